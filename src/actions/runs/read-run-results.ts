import { promisify } from "node:util";
import { brotliDecompress, brotliDecompressSync } from "node:zlib";
import { BlobMissing } from "#blobs/store.ts";
import { listResults } from "#db/runs/run-results.ts";
import { findRun, type VisibleRun } from "#db/runs/runs.ts";
import { readClock } from "#db/connection/clock.ts";
import { downloadHeaders } from "#domain/download.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { decideDelivery, type DeliveryMethod, type StoredResult } from "#domain/run-results.ts";
import { must } from "#lib/assert.ts";
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
