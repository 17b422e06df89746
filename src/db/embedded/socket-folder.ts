import { chmodSync, chownSync, lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DataFolder } from "./data-folder.ts";
import { readIfExists, writePrivate } from "./data-folder.ts";
import type { ServerUser } from "./server-user.ts";

/** Only a part of the socket's name: nothing listens on TCP. */
export const port = 5432;

/** The kernel's limit is 108 bytes with the closing zero. */
const socketPathBytesMax = 107;
const recordName = "postgres-socket";

/**
 * The private folder of the socket: the one recorded in the data folder if it still exists and is still ours, else a new one in
 * the temporary directory (the data folder's path may be too long for a socket).
 */
export function openSocketFolder(folder: DataFolder, user: ServerUser): string {
  const uid = user.owner?.uid ?? process.getuid?.();
  const recorded = readIfExists(folder, recordName);
  if (recorded !== null && isPrivateTo(recorded, uid)) return recorded;
  const made = make();
  chmodSync(made, 0o700);
  if (user.owner !== null) chownSync(made, user.owner.uid, user.owner.gid);
  writePrivate(folder, join(folder.path, recordName), made);
  return made;
}

export function removeSocketFolder(folder: DataFolder): void {
  const recorded = readIfExists(folder, recordName);
  if (recorded === null) return;
  rmSync(recorded, { recursive: true, force: true });
  rmSync(join(folder.path, recordName), { force: true });
}

function make(): string {
  const parents = [tmpdir(), "/tmp", "/var/tmp", "/dev/shm"];
  let reason: unknown;
  for (const parent of parents) {
    const longest = join(parent, "latchkey-XXXXXX", `.s.PGSQL.${port}.lock`);
    if (Buffer.byteLength(longest) > socketPathBytesMax) continue;
    try {
      return mkdtempSync(join(parent, "latchkey-"));
    } catch (error) {
      reason = error;
    }
  }
  throw new Error(
    `No folder for the socket of the embedded PostgreSQL can be created in ${parents.join(", ")}: ` +
      "set TMPDIR to a folder that can be written and whose path is short.",
    { cause: reason },
  );
}

/** The temporary directory is open to all: a folder that someone else put in our folder's place is not used. */
function isPrivateTo(path: string, uid: number | undefined): boolean {
  try {
    const stat = lstatSync(path);
    return stat.isDirectory() && (stat.mode & 0o077) === 0 && (uid === undefined || stat.uid === uid);
  } catch {
    return false;
  }
}
