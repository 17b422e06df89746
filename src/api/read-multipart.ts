import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import type { FastifyRequest } from "fastify";
import { stageUpload } from "#actions/runs/stage-upload.ts";
import type { Services } from "#actions/services.ts";
import type { BodyPrint, PartPrint } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import type { BodyValue } from "#domain/trigger-routing.ts";
import { countDelimiters } from "./count-parts.ts";
import { malformed, tooLarge, type ReadBody } from "./read-body.ts";

interface Part {
  readonly name: string;
  readonly contentType: string | null;
  readonly sha256: string;
  readonly value: BodyValue;
}

/**
 * Reads a multipart body: file parts are streamed to the object store while they are hashed, inline parts are kept as text. If
 * reading ends early, no file is left behind. Throws Problem 413, 415, 422.
 */
export async function readMultipart(
  services: Services,
  request: FastifyRequest,
  accountId: string,
): Promise<ReadBody> {
  const staged: string[] = [];
  try {
    const parts = await collectParts(services, request, accountId, staged);
    const discard = async (kept: ReadonlySet<string>): Promise<void> => {
      const left = parts
        .filter(({ name }) => !kept.has(name))
        .flatMap(({ value }) => (value.kind === "file" ? [value.blobKey] : []));
      await services.blobs.remove(left);
    };
    const print = (): BodyPrint => ({ kind: "multipart", parts: printsOf(parts) });
    return { values: valuesOf(parts), print, bytes: null, discard };
  } catch (error) {
    await services.blobs.remove(staged);
    throw error;
  }
}

/** Throws Problem 415. */
function boundaryOf(request: FastifyRequest): string {
  const boundary = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(request.headers["content-type"] ?? "");
  const text = boundary?.[1] ?? boundary?.[2] ?? "";
  if (text.length === 0 || text.length > limits.multipartBoundaryCharactersMax) {
    throw new Problem(
      "validation_error",
      "The Content-Type header must name a multipart boundary of 1 to 70 characters.",
      {
        status: 415,
      },
    );
  }
  return text;
}

function openParser(request: FastifyRequest): InstanceType<typeof Busboy> {
  return new Busboy({
    headers: request.headers as BusboyHeaders,
    isPartAFile: (_name, contentType, filename) =>
      filename !== undefined || contentType === "application/octet-stream",
    limits: {
      fileSize: limits.multipartFileBytesMax,
      files: limits.multipartFilesMax,
      fieldSize: limits.jsonBodyBytesMax,
      parts: limits.multipartPartsMax,
      headerPairs: 20,
      headerSize: limits.multipartHeaderBytesMax,
    },
  } as ConstructorParameters<typeof Busboy>[0]);
}

type FileStream = Readable & { truncated?: boolean };

/** Handlers of the parts as they arrive. Each returns a problem, which ends the reading. */
interface PartHandlers {
  chunk(chunk: Buffer): void;
  field(name: string | undefined, value: string, isTruncated: boolean, type: string): Problem | null;
  file(
    part: { name: string | undefined; stream: FileStream; filename: string | undefined; type: string },
    fail: (error: Error) => void,
  ): Problem | null;
}

async function collectParts(
  services: Services,
  request: FastifyRequest,
  accountId: string,
  staged: string[],
): Promise<readonly Part[]> {
  const fields: Part[] = [];
  const files: Promise<Part>[] = [];
  let inlineBytes = 0;
  const delimiters = countDelimiters(boundaryOf(request));
  const finished = parseBody(request, openParser(request), {
    chunk: (chunk) => delimiters.add(chunk),
    field: (name, value, isTruncated, type) => {
      inlineBytes += Buffer.byteLength(value);
      const problem = partProblem(name);
      if (problem) return problem;
      if (isTruncated || inlineBytes > limits.triggerJsonBytesMax) return tooLarge("An inline part");
      if (!value.isWellFormed()) return malformed("A part contains a lone surrogate.");
      fields.push(fieldPart(name ?? "", value, type));
      return null;
    },
    file: ({ name, stream, filename, type }, fail) => {
      const problem = partProblem(name);
      if (problem) return problem;
      stream.on("limit", () => fail(tooLarge(`The file of part "${(name ?? "").slice(0, 100)}"`)));
      const stored = storeFile(services, accountId, staged, { name: name ?? "", stream, filename, type });
      stored.catch(fail);
      files.push(stored);
      return null;
    },
  });
  try {
    await finished;
  } finally {
    // No file may still be streaming into the store when the caller removes the staged files.
    await Promise.allSettled(files);
  }
  const parts = [...fields, ...(await Promise.all(files))];
  if (delimiters.count !== parts.length + 1) {
    throw malformed("Every part needs a Content-Disposition header of form-data with a name.");
  }
  return parts;
}

/** Runs the parser over the body, to its end or to the first problem. */
async function parseBody(
  request: FastifyRequest,
  parser: InstanceType<typeof Busboy>,
  handlers: PartHandlers,
): Promise<void> {
  const streams: Readable[] = [];
  await new Promise<void>((resolve, reject) => {
    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      handlers.chunk(chunk);
      if (bytes > limits.multipartBytesMax) fail(tooLarge("The body"));
    };
    const fail = (error: Error): void => {
      request.raw.off("data", count);
      request.raw.unpipe(parser);
      reject(error);
      // The code that stores a file waits for an end that will never come.
      for (const stream of streams) stream.destroy(error);
      parser.destroy();
    };
    const check = (problem: Problem | null): void => {
      if (problem) fail(problem);
    };
    parser.on(
      "field",
      (
        name: string | undefined,
        value: string,
        _name: boolean,
        isTruncated: boolean,
        _encoding: string,
        type: string,
      ) => check(handlers.field(name, value, isTruncated, type)),
    );
    parser.on(
      "file",
      (
        name: string | undefined,
        stream: FileStream,
        filename: string | undefined,
        _encoding: string,
        type: string,
      ) => {
        streams.push(stream);
        // The library only emits the error, perhaps before the stream is read. Destroying the stream reports it to a later reader, too.
        stream.on("error", (error: Error) => stream.destroy(error));
        check(handlers.file({ name, stream, filename, type }, fail));
      },
    );
    for (const event of ["partsLimit", "filesLimit", "fieldsLimit"])
      parser.on(event, () => fail(tooLarge("The number of parts")));
    parser.on("finish", resolve);
    // The library's messages quote the body.
    parser.on("error", (error: Error) =>
      fail(error instanceof Problem ? error : malformed("The multipart body is malformed.")),
    );
    request.raw.on("data", count);
    request.raw.on("aborted", () => fail(malformed("The body ended early.")));
    request.raw.pipe(parser);
  });
}

function partProblem(name: string | undefined): Problem | null {
  if (name === undefined) return malformed("A part has no name.");
  if (Buffer.byteLength(name) > limits.multipartNameBytesMax) return tooLarge("The name of a part");
  return name.isWellFormed() ? null : malformed("A part's name contains a lone surrogate.");
}

function fieldPart(name: string, value: string, type: string): Part {
  return {
    name,
    contentType: type || null,
    sha256: createHash("sha256").update(value, "utf8").digest("hex"),
    value: { kind: "string", text: value },
  };
}

async function storeFile(
  services: Services,
  accountId: string,
  staged: string[],
  part: {
    readonly name: string;
    readonly stream: Readable & { truncated?: boolean };
    readonly filename: string | undefined;
    readonly type: string;
  },
): Promise<Part> {
  const blob = await stageUpload(services, accountId, part.stream, (key) => staged.push(key));
  if (part.stream.truncated) throw tooLarge(`The file of part "${part.name.slice(0, 100)}"`);
  return {
    name: part.name,
    contentType: part.type || null,
    sha256: blob.sha256.toString("hex"),
    value: {
      kind: "file",
      blobKey: blob.key,
      filename: part.filename ?? null,
      contentType: part.type || null,
      sizeBytes: blob.sizeBytes,
      sha256: blob.sha256,
    },
  };
}

/** A repeated part name is `422`; a repeated `credential_id` is one list (docs/api.md#multipart). */
function valuesOf(parts: readonly Part[]): ReadonlyMap<string, BodyValue> {
  const values = new Map<string, BodyValue>();
  for (const part of parts) {
    const earlier = values.get(part.name);
    if (!earlier) values.set(part.name, part.value);
    else if (
      /^credential_ids?$/.test(part.name) &&
      earlier.kind === "string" &&
      part.value.kind === "string"
    ) {
      values.set(part.name, { kind: "string", text: `${earlier.text},${part.value.text}` });
    } else throw invalidField(part.name, `The part "${part.name}" was sent more than once.`);
  }
  return values;
}

function printsOf(parts: readonly Part[]): readonly PartPrint[] {
  const seen = new Map<string, number>();
  return parts.map((part) => {
    const indexInName = seen.get(part.name) ?? 0;
    seen.set(part.name, indexInName + 1);
    const filename = part.value.kind === "file" ? part.value.filename : null;
    return { name: part.name, indexInName, filename, contentType: part.contentType, sha256: part.sha256 };
  });
}
