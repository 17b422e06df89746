import { brotliCompressSync } from "node:zlib";
import { BlobMissing } from "#blobs/store.ts";
import { readClock } from "#db/connection/clock.ts";
import { findResultContent } from "#db/runs/run-results.ts";
import { Problem } from "#domain/problem.ts";
import { RESULT_COMPRESSION } from "#lib/result-compression.ts";
import type { Needs } from "#actions/services.ts";

export interface Download {
  readonly key: string;
  readonly sizeBytes: number;
  /** Throws Problem 404 if the data has been purged in the meantime; after the first bytes, only a fault ends the stream. */
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
