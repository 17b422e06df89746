import { createHash } from "node:crypto";
import { BlobMissing, type BlobStore } from "#blobs/store.ts";
import {
  countStoredObjects,
  eachStoredObject,
  isObjectNamed,
  listPurgedRuns,
  type StoredObject,
} from "#db/invariants/invariants.ts";
import { listUnnamedBlobs, readOrphanLimit } from "#db/orphans.ts";
import type { Database } from "#db/connection/pool.ts";
import type { InvariantFinding } from "#domain/invariants.ts";
import { limits } from "#domain/limits.ts";
import { OBJECT_PREFIXES, ownNames } from "./sweep-objects.ts";

interface Stored {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

const BATCH = 200;
/** In addition to the sweep's own age limit, because it runs once an hour. */
const SWEEP_LATE_MS = 2 * 3_600_000;

/** V5: every object that a row refers to exists, with the recorded length and SHA-256. */
export async function checkObjects({ db, blobs, onProgress }: Stored): Promise<readonly InvariantFinding[]> {
  const findings: InvariantFinding[] = [];
  const total = await countStoredObjects(db);
  let done = 0;
  for await (const batch of eachStoredObject(db, BATCH)) {
    for (const object of batch) {
      const problem = await problemOf(blobs, object);
      // Purged between reading the row and the object: not missing.
      if (problem !== null && (await isObjectNamed(db, object.key))) findings.push(damaged(object, problem));
    }
    onProgress("objects", (done += batch.length), total);
  }
  return findings;
}

async function problemOf(blobs: BlobStore, { key, sizeBytes, sha256 }: StoredObject): Promise<string | null> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const chunk of blobs.open(key)) {
      hash.update(chunk);
      bytes += chunk.byteLength;
    }
  } catch (error) {
    if (!(error instanceof BlobMissing)) throw error;
    return "is missing";
  }
  if (bytes !== sizeBytes) return `has ${bytes} bytes, but ${sizeBytes} were stored`;
  return hash.digest().equals(sha256) ? null : "has changed: its SHA-256 differs from the stored one";
}

function damaged({ key, purpose, runId }: StoredObject, problem: string): InvariantFinding {
  return {
    invariant: "V5",
    check: "object",
    place: `object ${key}`,
    problem: `the ${NOUNS[purpose] ?? purpose} of run ${runId ?? "unknown"} ${problem}`,
    remedy: "restore it from a backup of the object store; without one, trigger the run again",
  };
}

const NOUNS: Readonly<Record<string, string>> = { input: "input", step: "journal", result: "result" };

/** V11 and V14: objects that no row refers to have been removed, within a margin. */
export async function findOrphans({ db, blobs }: Stored): Promise<readonly InvariantFinding[]> {
  const before = await readOrphanLimit(db, limits.orphanedObjectAgeMs + SWEEP_LATE_MS);
  const findings: InvariantFinding[] = [];
  const isOurs = await ownNames(db);
  for (const prefix of OBJECT_PREFIXES) {
    for await (const page of blobs.list(prefix, BATCH)) {
      const old = page
        .filter(({ key, modifiedAt }) => modifiedAt < before && isOurs(key))
        .map(({ key }) => key);
      if (old.length === 0) continue;
      const orphans = await listUnnamedBlobs(db, old);
      const purged = await listPurgedRuns(db, orphans.map(runOf));
      findings.push(...orphans.map((key) => orphaned(key, purged.has(runOf(key)))));
    }
  }
  for await (const name of blobs.listUnfinished(before, isOurs)) findings.push(unfinished(name));
  return findings;
}

/** `steps/<account>/<run>/…`; the key of an input contains no run. */
const runOf = (key: string): string => key.split("/")[2] ?? "";

const SWEEP =
  "start a worker: it sweeps the store once an hour. If one is running, check its log for the task `sweep_objects`";

const orphaned = (key: string, isPurged: boolean): InvariantFinding => ({
  invariant: isPurged ? "V14" : "V11",
  check: isPurged ? "object_of_purged_run" : "object_orphaned",
  place: `object ${key}`,
  problem: isPurged
    ? "it still exists, though its run is purged"
    : "no row refers to it, but no sweep has removed it in time",
  remedy: SWEEP,
});

const unfinished = (name: string): InvariantFinding => ({
  invariant: "V11",
  check: "object_unfinished",
  place: `object ${name}`,
  problem: "its upload was never completed, but no sweep has removed it in time",
  remedy: SWEEP,
});
