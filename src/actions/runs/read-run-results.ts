import { promisify } from "node:util";
import { brotliCompressSync, brotliDecompress, brotliDecompressSync } from "node:zlib";
import { BlobMissing } from "#blobs/store.ts";
import { findResultContent, listResults } from "#db/runs/run-results.ts";
import { findRun, type VisibleRun } from "#db/runs/runs.ts";
import { readClock } from "#db/connection/clock.ts";
import { downloadHeaders } from "#domain/download.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { decideDelivery, type DeliveryMethod, type StoredResult } from "#domain/run-results.ts";
import { must } from "#lib/assert.ts";
import { RESULT_COMPRESSION } from "#lib/result-compression.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** The results of a run as the text of the response body. Throws Problem 400 (purged), 409 (not completed). */
export async function readRunResults(
  services: Needs<"blobs" | "db" | "publicUrl" | "signing">,
  caller: Caller,
  run: VisibleRun,
  asked: DeliveryMethod | undefined,
): Promise<string> {
  if (run.purgedAt !== null) throw purged();
  // Spec, GET /blueprint-runs/{runId}/results 3; docs/api.md#results: 409 in every status but `completed`.
  if (run.status !== "completed") {
    throw new Problem("conflict", `The run is ${run.status}; results exist once it is completed.`);
  }
  const results = await listResults(services.db, run.id);
  // A purge deleted them in one transaction, after the run was read.
  if (results.length === 0 && (await isPurged(services, run))) throw purged();
  const delivery = decideDelivery(asked, must(run.responseBytes, "the estimated size of a completed run"));
  const values =
    delivery === "direct"
      ? await readDirect(services, results)
      : await presign(services, caller, run.id, results);
  const metadata = {
    runKey: run.runKey,
    metadata: JSON.parse(run.metadata.toString("utf8")) as unknown,
    timings: {
      // docs/api.md#results: executionBeganAt is started_at.
      executionBeganAt: must(run.startedAt, "started_at").toISOString(),
      executionCompletedAt: must(run.endedAt, "ended_at").toISOString(),
    },
  };
  const entries = results.map((result, index) => `${JSON.stringify(result.key)}:${values[index]}`);
  return `{"dataDeliveryMethod":"${delivery}","results":{${entries.join(",")}},"executionMetadata":${JSON.stringify(metadata)}}`;
}

async function isPurged(services: Needs<"db">, run: VisibleRun): Promise<boolean> {
  return must(await findRun(services.db, run.accountId, { id: run.id }), "the run").purgedAt !== null;
}

/** Spec, GET /blueprint-runs/{runId}/results 4. */
function purged(): Problem {
  const message = "The run's data has been purged.";
  return new Problem("validation_error", message, {
    status: 400,
    details: [{ message, code: "run_data_purged" }],
  });
}

/** The stored JSON of each key, as it was written. If a purge wins the race, the whole answer is a 400. */
async function readDirect(
  services: Needs<"blobs">,
  results: readonly StoredResult[],
): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const result of results) {
    if (result.content !== null) {
      texts.push(result.content.toString("utf8"));
      continue;
    }
    const key = must(result.blobKey, "a large result's object");
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of services.blobs.open(key)) chunks.push(chunk);
    } catch (error) {
      if (error instanceof BlobMissing) throw purged();
      throw error;
    }
    texts.push((await decompress(Buffer.concat(chunks), result.jsonBytes)).toString("utf8"));
  }
  return texts;
}

const inAnotherThread = promisify(brotliDecompress);
/** Up to this size, the work takes less time than handing it to another thread. */
const HERE_BYTES_MAX = 65_536;

async function decompress(bytes: Buffer, jsonBytes: number): Promise<Buffer> {
  return jsonBytes <= HERE_BYTES_MAX ? brotliDecompressSync(bytes) : await inAnotherThread(bytes);
}

async function presign(
  services: Needs<"blobs" | "db" | "publicUrl" | "signing">,
  caller: Caller,
  runId: string,
  results: readonly StoredResult[],
): Promise<readonly string[]> {
  const nowMs = Math.floor(await readClock(services.db));
  return await Promise.all(
    results.map(async (result) => {
      const ofStore = await presignInStore(services, result, nowMs);
      return JSON.stringify(ofStore ?? presignHere(services, caller, runId, result.key, nowMs));
    }),
  );
}

/** Null: the value is small and not in the store, or the store has no URLs. */
async function presignInStore(
  { blobs }: Needs<"blobs">,
  { key, blobKey }: StoredResult,
  nowMs: number,
): Promise<string | null> {
  if (blobKey === null) return null;
  const time = { fromMs: nowMs, lifetimeMs: limits.presignedUrlLifetimeMs };
  return await blobs.presign(blobKey, { ...downloadHeaders(key), ...time });
}

function presignHere(
  services: Needs<"publicUrl" | "signing">,
  caller: Caller,
  runId: string,
  key: string,
  nowMs: number,
): string {
  const accountId = caller.account.id;
  const expiresAtMs = nowMs + limits.presignedUrlLifetimeMs;
  const signature = services.signing.presign({ accountId, runId, key, expiresAtMs });
  const path = `${encodeURIComponent(accountId)}/${encodeURIComponent(runId)}/${encodeURIComponent(key)}`;
  return `${services.publicUrl()}/downloads/${path}?expires=${expiresAtMs}&signature=${signature}`;
}

export interface Download {
  readonly key: string;
  readonly sizeBytes: number;
  /** Throws Problem 404 when the data has been purged meanwhile; after the first bytes, only a fault ends the stream. */
  open(range?: { readonly start: number; readonly end: number }): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * The object of a presigned URL. Spec, GET /blueprint-runs/{runId}/results 2: two hours, by the database's clock. Throws Problem 403 when the URL was
 * changed or has expired, 404 when the data has been purged.
 */
export async function openDownload(
  services: Needs<"blobs" | "db" | "signing">,
  url: {
    readonly accountId: string;
    readonly runId: string;
    readonly key: string;
    readonly expires: string;
    readonly signature: string;
  },
): Promise<Download> {
  // No leading zero: a link has one spelling, and every other one is refused.
  const expiresAtMs = /^[1-9]\d{0,14}$/.test(url.expires) ? Number(url.expires) : 0;
  const signed = services.signing.verifyPresigned(
    { accountId: url.accountId, runId: url.runId, key: url.key, expiresAtMs },
    url.signature,
  );
  if (!signed) throw new Problem("authorization_error", "The download link is not valid.");
  if ((await readClock(services.db)) >= expiresAtMs) {
    throw new Problem(
      "authorization_error",
      "The download link has expired. Ask for the run's results again.",
    );
  }
  const found = await findResultContent(services.db, url.runId, url.key);
  if (!found) throw noLongerThere();
  const { content, blobKey, sizeBytes } = found;
  if (content === null)
    return {
      key: url.key,
      sizeBytes,
      open: async (range) => await begin(services.blobs.open(blobKey, range)),
    };
  // Compressed as a large value is stored: it is small, and compression is deterministic.
  const compressed = brotliCompressSync(content, RESULT_COMPRESSION);
  return {
    key: url.key,
    sizeBytes: compressed.length,
    open: async ({ start, end } = { start: 0, end: compressed.length - 1 }) =>
      (async function* () {
        yield compressed.subarray(start, end + 1);
      })(),
  };
}

const noLongerThere = (): Problem => new Problem("not_found", "The run's data is no longer there.");

/** Opens the object and reads its first bytes, so that a purge between row and object is answered and does not break a download off. */
async function begin(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const reader = bytes[Symbol.asyncIterator]();
  const first = await reader.next().catch((error: unknown) => {
    throw error instanceof BlobMissing ? noLongerThere() : error;
  });
  return (async function* () {
    try {
      for (let next = first; next.done !== true; next = await reader.next()) yield next.value;
    } finally {
      await reader.return?.();
    }
  })();
}
