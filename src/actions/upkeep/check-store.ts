import { BlobMissing, type BlobStore } from "#blobs/store.ts";
import { readClock } from "#db/connection/clock.ts";
import { readOrphanLimit } from "#db/orphans.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { randomBase62 } from "#lib/new-id.ts";

/** The store's clock decides when a presigned URL is valid, and the database's clock signs it. */
const CLOCKS_DIFFER_MS = 60_000;
/** Stored below the inputs, so that the sweep removes the object if this process dies. */
const FOLDER = "inputs/doctor/";
const LISTED = 100;

/**
 * Uses an object like the service does: writes it, reads it completely and partly, lists and deletes it. Returns the problem as a
 * sentence; null: none.
 */
export async function checkStore(db: Database, blobs: BlobStore): Promise<string | null> {
  const key = `${FOLDER}${randomBase62(24)}`;
  const content = Buffer.from(`latchkey doctor ${key}`);
  try {
    const findings = await tryOut(db, blobs, key, content);
    await blobs.remove([key]);
    if (await isThere(blobs, key)) findings.push("still returns an object that was deleted");
    return findings.length === 0 ? null : `the object store ${findings.join("; it ")}`;
  } catch (error) {
    await blobs.remove([key]).catch(() => undefined);
    return describe(error as NodeJS.ErrnoException);
  }
}

async function tryOut(db: Database, blobs: BlobStore, key: string, content: Buffer): Promise<string[]> {
  await blobs.put(
    key,
    (async function* () {
      yield content;
    })(),
  );
  const nowMs = await readClock(db);
  const whole = Buffer.concat(await Array.fromAsync(blobs.open(key)));
  const part = Buffer.concat(await Array.fromAsync(blobs.open(key, { start: 9, end: 14 })));
  let listedAt: Date | null = null;
  for await (const page of blobs.list(FOLDER, LISTED))
    listedAt = page.find((each) => each.key === key)?.modifiedAt ?? listedAt;
  // Lists objects like the sweep.
  const before = await readOrphanLimit(db, limits.orphanedObjectAgeMs);
  for await (const _name of blobs.listUnfinished(before, () => true)) break;
  const findings: string[] = [];
  if (!whole.equals(content)) findings.push("returns other content than was written");
  // Reads a range, like downloads and like a read that resumes after a broken connection.
  if (part.toString() !== "doctor") findings.push("returns other bytes than the requested range");
  if (listedAt === null) findings.push("does not list an object that was written");
  else findings.push(...compareClocks(listedAt.getTime() - nowMs));
  return findings;
}

function compareClocks(aheadMs: number): readonly string[] {
  if (Math.abs(aheadMs) < CLOCKS_DIFFER_MS) return [];
  const [seconds, way] = [Math.round(Math.abs(aheadMs) / 1_000), aheadMs > 0 ? "ahead of" : "behind"];
  return [
    `has a clock that is ${seconds} s ${way} the database's, so download URLs begin and expire at the wrong time. Synchronise both by NTP`,
  ];
}

async function isThere(blobs: BlobStore, key: string): Promise<boolean> {
  try {
    for await (const _chunk of blobs.open(key)) return true;
    return true;
  } catch (error) {
    if (error instanceof BlobMissing) return false;
    throw error;
  }
}

function describe({ name, message, code }: NodeJS.ErrnoException): string {
  if (name === "StoreFailed") return message;
  const remedy = code === undefined ? undefined : REMEDIES.get(code);
  return `the folder of the objects can't be used (${code ?? name}). ${remedy ?? "Check the disk and the folder's permissions."}`;
}

const REMEDIES = new Map([
  ["EACCES", "Allow this user to read and write the folder `objects` in the data folder."],
  ["EROFS", "Its disk is mounted read-only."],
  ["ENOSPC", "Its disk is full."],
  ["ENOTDIR", "Another file has its name: move it."],
]);
