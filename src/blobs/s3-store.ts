import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { assert, must } from "#lib/assert.ts";
import { openClient, STORE_TIMEOUTS, type OpenClient, type StoreTimeouts } from "./s3-client.ts";
import { isNoSuchObject, storeFailure, type S3Settings } from "./s3-failures.ts";
import {
  BlobMissing,
  isObjectKey,
  isObjectPrefix,
  MARK_NAME,
  StoreFailed,
  type BlobStore,
  type ListedBlob,
  type PresignedDownload,
  type StoredBlob,
} from "./store.ts";

/** The smallest part that S3 accepts. An object has at most 10,000 parts, so 50 GB. Two are uploaded while the next is collected. */
const PART_BYTES = 5 * 1_048_576;
const PARTS_AT_ONCE = 2;
const REMOVED_AT_ONCE = 8;
const PAGE = 1_000;
/** Attempts to read on without receiving a byte. */
const READ_TRIES_MAX = 3;

/** Stores objects in a bucket of S3 or of a compatible store. */
export function openS3Store(settings: S3Settings, patience = STORE_TIMEOUTS): BlobStore {
  return new S3Store(settings, patience);
}

class S3Store implements BlobStore {
  readonly kind = "s3";
  readonly #settings: S3Settings;
  readonly #patience: StoreTimeouts;
  #opened: Promise<OpenClient> | null = null;
  #openedForPublic: Promise<OpenClient> | null = null;
  /** True until the store rejects one. */
  #takesLists = true;

  constructor(settings: S3Settings, patience: StoreTimeouts) {
    this.#settings = settings;
    this.#patience = patience;
  }

  /** If the bytes don't arrive completely, nothing is stored: the upload is aborted. */
  async put(key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob> {
    const at = this.#at(key);
    const measured = measure(bytes);
    const body = Readable.from(measured.bytes);
    const [opened, { Upload }] = await Promise.all([this.#open(), import("@aws-sdk/lib-storage")]);
    const upload = new Upload({
      client: opened.client,
      params: { ...at, Body: body, ContentType: "application/octet-stream" },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
    });
    try {
      await upload.done();
      await this.#verify(opened, at, measured.sizeBytes());
    } catch (error) {
      const ownFailure = measured.failure();
      await this.#takeBack(opened, at, upload.uploadId, ownFailure === null);
      throw ownFailure ?? storeFailure(this.#settings, error);
    } finally {
      body.destroy();
    }
    return { key, sizeBytes: measured.sizeBytes(), sha256: measured.sha256() };
  }

  async *open(
    key: string,
    range?: { readonly start: number; readonly end: number },
  ): AsyncIterable<Uint8Array> {
    const at = this.#at(key);
    let next = range?.start ?? 0;
    let end = range?.end ?? null;
    let etag: string | undefined;
    for (let tries = 1; end === null || next <= end; tries++) {
      try {
        const { client, s3 } = await this.#open();
        const part = next > 0 || end !== null ? { Range: `bytes=${next}-${end ?? ""}` } : {};
        // A resumed read must continue with the same object.
        const same = etag === undefined ? {} : { IfMatch: etag };
        const answer = await client.send(new s3.GetObjectCommand({ ...at, ...part, ...same }));
        etag ??= must(answer.ETag, "the object's ETag");
        end = next + must(answer.ContentLength, "the object's length") - 1;
        for await (const chunk of answer.Body as AsyncIterable<Uint8Array>) {
          next += chunk.byteLength;
          tries = 0;
          yield chunk;
        }
      } catch (error) {
        if (isNoSuchObject(error)) throw new BlobMissing(key);
        // A slow reader may lose the connection; the read then resumes where it stopped.
        if (etag === undefined || tries >= READ_TRIES_MAX || isAnswer(error))
          throw storeFailure(this.#settings, error);
      }
    }
  }

  async presign(key: string, download: PresignedDownload): Promise<string | null> {
    const { getSignedUrl } = await import("@aws-sdk/s3-request-presigner");
    try {
      const { client, s3 } = await this.#openForPublic();
      const { expiration } = await client.config.credentials();
      const until = download.fromMs + download.lifetimeMs;
      // A URL signed with a role's temporary credentials expires with them.
      if (expiration !== undefined && expiration.getTime() < until) return null;
      const command = new s3.GetObjectCommand({
        ...this.#at(key),
        ResponseContentType: download.contentType,
        ResponseContentDisposition: download.contentDisposition,
        ResponseCacheControl: download.cacheControl,
      });
      return await getSignedUrl(client, command, {
        signingDate: new Date(download.fromMs),
        expiresIn: Math.floor(download.lifetimeMs / 1_000),
      });
    } catch (error) {
      throw storeFailure(this.#settings, error);
    }
  }

  async readMark(): Promise<string | null> {
    return await this.#ask(async ({ client, s3 }) => {
      try {
        const { Body } = await client.send(new s3.GetObjectCommand(this.#markAt()));
        return (await Body?.transformToString()) ?? "";
      } catch (error) {
        if (isNoSuchObject(error)) return null;
        throw error;
      }
    });
  }

  async claim(mark: string): Promise<string> {
    const found = await this.readMark();
    if (found !== null) return found;
    await this.#ask(async ({ client, s3 }) => {
      const put = { ...this.#markAt(), Body: mark, ContentType: "application/json" };
      try {
        await client.send(new s3.PutObjectCommand({ ...put, IfNoneMatch: "*" }));
      } catch (error) {
        // A store without conditional writes accepts it unconditionally. Of two first starts at once, the one that then reads
        // another mark has lost.
        if (isConditionUnsupported(error)) await client.send(new s3.PutObjectCommand(put));
        else if (!isTakenBefore(error)) throw error;
      }
    });
    return (await this.readMark()) ?? mark;
  }

  async adopt(mark: string): Promise<void> {
    await this.#ask(async ({ client, s3 }) => {
      await client.send(
        new s3.PutObjectCommand({ ...this.#markAt(), Body: mark, ContentType: "application/json" }),
      );
    });
  }

  async remove(keys: readonly string[]): Promise<void> {
    await this.#removeNamed(keys.map((key) => this.#at(key).Key));
  }

  async removeAll(prefix: string): Promise<void> {
    assert(isObjectPrefix(prefix), "the prefix was generated by the server");
    for await (const page of this.#listRaw(prefix, PAGE))
      await this.#removeNamed(page.map(({ name }) => name));
    for await (const upload of this.#unfinished(prefix)) await this.#abort(upload.name, upload.id);
  }

  async *list(prefix: string, pageSize: number, after = ""): AsyncIterable<readonly ListedBlob[]> {
    assert(isObjectPrefix(prefix), "the prefix was generated by the server");
    for await (const page of this.#listRaw(prefix, pageSize, after)) {
      const listed = page
        .map(({ name, modifiedAt }) => ({ key: name.slice(this.#settings.prefix.length), modifiedAt }))
        // Skips objects that are not ours. Some stores list parts of uploads, too. A store that doesn't support `StartAfter`
        // starts at the beginning.
        .filter(({ key }) => isObjectKey(key) && key > after);
      if (listed.length > 0) yield listed;
    }
  }

  async *listUnfinished(before: Date, isOurs: (key: string) => boolean): AsyncIterable<string> {
    for await (const { name } of this.#oldUnfinished(before, isOurs))
      yield name.slice(this.#settings.prefix.length);
  }

  async removeUnfinished(before: Date, isOurs: (key: string) => boolean): Promise<number> {
    let removed = 0;
    for await (const { name, id } of this.#oldUnfinished(before, isOurs)) {
      await this.#abort(name, id);
      removed++;
    }
    return removed;
  }

  /** An object counts only once the store shows it with its size (docs/decisions/0029). */
  async #verify(opened: OpenClient, at: Place, sizeBytes: number): Promise<void> {
    const { ContentLength } = await opened.client.send(new opened.s3.HeadObjectCommand(at));
    if (ContentLength === sizeBytes) return;
    throw new StoreFailed(
      `the object store has ${ContentLength ?? "no"} of the ${sizeBytes} bytes of an object that it had acknowledged`,
      "incomplete",
    );
  }

  /** Best effort: the sweep finds what remains. The key was never used before, and no other process has it. */
  async #takeBack(
    { client, s3 }: OpenClient,
    at: Place,
    UploadId: string | undefined,
    mayBeWhole: boolean,
  ): Promise<void> {
    const soon = { abortSignal: AbortSignal.timeout(this.#patience.silentMs) };
    await Promise.allSettled([
      UploadId !== undefined && client.send(new s3.AbortMultipartUploadCommand({ ...at, UploadId }), soon),
      mayBeWhole && client.send(new s3.DeleteObjectCommand(at), soon),
    ]);
  }

  async #removeNamed(names: readonly string[]): Promise<void> {
    if (names.length > 1 && this.#takesLists) {
      for (let first = 0; first < names.length; first += PAGE)
        if (!(await this.#removeList(names.slice(first, first + PAGE)))) {
          this.#takesLists = false;
          return await this.#removeOneByOne(names.slice(first));
        }
      return;
    }
    await this.#removeOneByOne(names);
  }

  /** Returns false if the store does not support deleting lists; not every compatible store does. */
  async #removeList(names: readonly string[]): Promise<boolean> {
    const { bucket: Bucket } = this.#settings;
    return await this.#ask(async ({ client, s3 }) => {
      const Delete = { Objects: names.map((Key) => ({ Key })), Quiet: true };
      try {
        const { Errors = [] } = await client.send(new s3.DeleteObjectsCommand({ Bucket, Delete }));
        // Each is deleted on its own, to get the reason.
        if (Errors.length > 0) await this.#removeOneByOne(Errors.flatMap(({ Key }) => Key ?? []));
        return true;
      } catch (error) {
        if (!isConditionUnsupported(error)) throw error;
        return false;
      }
    });
  }

  async #removeOneByOne(names: readonly string[]): Promise<void> {
    const { bucket: Bucket } = this.#settings;
    for (let first = 0; first < names.length; first += REMOVED_AT_ONCE) {
      const some = names.slice(first, first + REMOVED_AT_ONCE);
      await this.#ask(async ({ client, s3 }) =>
        Promise.all(some.map(async (Key) => await client.send(new s3.DeleteObjectCommand({ Bucket, Key })))),
      );
    }
  }

  async *#listRaw(
    prefix: string,
    pageSize: number,
    after = "",
  ): AsyncIterable<readonly { readonly name: string; readonly modifiedAt: Date }[]> {
    for (let token: string | undefined, more = true; more; more = token !== undefined) {
      const page = await this.#ask(async ({ client, s3 }) =>
        client.send(
          new s3.ListObjectsV2Command({
            ...this.#below(prefix),
            MaxKeys: pageSize,
            ...(after > prefix && { StartAfter: this.#settings.prefix + after }),
            ContinuationToken: token,
          }),
        ),
      );
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
      yield (page.Contents ?? []).flatMap(({ Key, LastModified }) =>
        Key === undefined || LastModified === undefined ? [] : [{ name: Key, modifiedAt: LastModified }],
      );
    }
  }

  async *#oldUnfinished(before: Date, isOurs: (key: string) => boolean): AsyncIterable<UnfinishedUpload> {
    for await (const upload of this.#unfinished(""))
      if (upload.begunAt < before && isOurs(upload.name.slice(this.#settings.prefix.length))) yield upload;
  }

  async *#unfinished(prefix: string): AsyncIterable<UnfinishedUpload> {
    let after: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | null = {};
    while (after !== null) {
      const marker: object = after;
      const page = await this.#ask(async ({ client, s3 }) =>
        client.send(new s3.ListMultipartUploadsCommand({ ...this.#below(prefix), ...marker })),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? [])
        if (Key !== undefined && UploadId !== undefined && Initiated !== undefined)
          yield { name: Key, id: UploadId, begunAt: Initiated };
      after =
        page.IsTruncated === true
          ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
          : null;
    }
  }

  async #abort(name: string, UploadId: string): Promise<void> {
    const { bucket: Bucket } = this.#settings;
    await this.#ask(async ({ client, s3 }) => {
      await client
        .send(new s3.AbortMultipartUploadCommand({ Bucket, Key: name, UploadId }))
        .catch((error: unknown) => {
          // It has been completed or aborted in the meantime.
          if ((error as Error).name !== "NoSuchUpload") throw error;
        });
    });
  }

  #at(key: string): Place {
    assert(isObjectKey(key), "the object key was generated by the server");
    return { Bucket: this.#settings.bucket, Key: this.#settings.prefix + key };
  }

  #markAt(): Place {
    return { Bucket: this.#settings.bucket, Key: this.#settings.prefix + MARK_NAME };
  }

  #below(prefix: string): { readonly Bucket: string; readonly Prefix: string } {
    return { Bucket: this.#settings.bucket, Prefix: this.#settings.prefix + prefix };
  }

  async #ask<T>(work: (opened: OpenClient) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#open());
    } catch (error) {
      throw storeFailure(this.#settings, error);
    }
  }

  async #open(): Promise<OpenClient> {
    return await (this.#opened ??= openClient(this.#settings, this.#settings.endpoint, this.#patience));
  }

  /** Signs a URL with the address that callers use. Sends nothing. */
  async #openForPublic(): Promise<OpenClient> {
    const { publicEndpoint } = this.#settings;
    if (publicEndpoint === null) return await this.#open();
    return await (this.#openedForPublic ??= openClient(this.#settings, publicEndpoint, this.#patience));
  }
}

interface Place {
  readonly Bucket: string;
  readonly Key: string;
}

interface UnfinishedUpload {
  readonly name: string;
  readonly id: string;
  readonly begunAt: Date;
}

/** The status of the store's answer; 0: it gave none. */
const statusOf = (error: unknown): number =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode ?? 0;

/** The store understood the request and refused it: a retry would not help. */
const isAnswer = (error: unknown): boolean => statusOf(error) >= 300 && statusOf(error) < 500;

/** The store does not support the request, or requires another kind of checksum. */
const isConditionUnsupported = (error: unknown): boolean => [400, 405, 501].includes(statusOf(error));

/** Another process has written it in the meantime. */
const isTakenBefore = (error: unknown): boolean => [409, 412].includes(statusOf(error));

/** Hashes and counts the bytes that pass, and records a failure of their source, which is not the store's. */
function measure(bytes: AsyncIterable<Uint8Array>) {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  let failure: unknown = null;
  async function* measured(): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of bytes) {
        hash.update(chunk);
        sizeBytes += chunk.byteLength;
        yield chunk;
      }
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  return {
    bytes: measured(),
    sizeBytes: () => sizeBytes,
    sha256: () => hash.digest(),
    failure: () => failure,
  };
}
