import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DataFolder } from "./data-folder.ts";
import { makeFolder, writePrivate } from "./data-folder.ts";
import type { ProcessMark } from "#lib/process-mark.ts";
import { isAlive, ownMark } from "#lib/process-mark.ts";

/** A process may use the server more than once (`<pid>`, `<pid>.1`, …); each use has its own file. */
let usesOfThisProcess = 0;

/**
 * Registers this process as a user of the server; the last user to leave stops it. The folder's lock must be held. Returns the
 * name to pass to `leave`.
 */
export function register(folder: DataFolder): string {
  makeFolder(folder, usersFolder(folder));
  const name = usesOfThisProcess === 0 ? String(process.pid) : `${process.pid}.${usesOfThisProcess}`;
  usesOfThisProcess += 1;
  writePrivate(folder, join(usersFolder(folder), name), JSON.stringify(ownMark()));
  return name;
}

export function leave(folder: DataFolder, name: string): void {
  rmSync(join(usersFolder(folder), name), { force: true });
}

/** The pids of the live processes that use the server; files of dead ones are removed. */
export function liveUsers(folder: DataFolder): number[] {
  const pids: number[] = [];
  for (const name of namesIn(usersFolder(folder))) {
    const path = join(usersFolder(folder), name);
    const mark = readMark(path);
    if (mark !== null && isAlive(mark)) pids.push(mark.pid);
    else rmSync(path, { force: true });
  }
  return pids;
}

function usersFolder(folder: DataFolder): string {
  return join(folder.path, "postgres-users");
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Null for an incomplete file of a killed process. */
function readMark(path: string): ProcessMark | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ProcessMark;
  } catch {
    return null;
  }
}
