import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DataFolder } from "./data-folder.ts";
import { makeFolder, writePrivate } from "./data-folder.ts";
import type { ProcessMark } from "#lib/process-mark.ts";
import { isAlive, ownMark } from "#lib/process-mark.ts";

const lockWaitMs = 180_000;
const lockPollMs = 25;

/**
 * Runs `work` under a lock on this data folder.
 *
 * The lock is the file with the highest number in `postgres-lock/`. A process takes it by creating the next number (a hard link,
 * which appears atomically and can only be created once); this is allowed if the highest one is released or its process is dead.
 * The highest file is never deleted, not even at release: numbers only grow, so a process that saw a stale lock long ago can't
 * take over a fresh one, and nothing has to be cleaned up after kill -9.
 */
export async function withFolderLock<T>(folder: DataFolder, work: () => Promise<T>): Promise<T> {
  const release = await acquire(folder);
  try {
    return await work();
  } finally {
    release();
  }
}

async function acquire(folder: DataFolder): Promise<() => void> {
  const locks = join(folder.path, "postgres-lock");
  makeFolder(folder, locks);
  const deadline = performance.now() + lockWaitMs;
  for (;;) {
    const top = highest(locks);
    const holder = top === 0 ? null : readHolder(join(locks, String(top)));
    if (holder === null || !isAlive(holder)) {
      const mine = top + 1;
      if (create(folder, locks, mine)) return () => release(folder, locks, mine);
    } else if (performance.now() > deadline) {
      throw new Error(
        `Process ${holder.pid} has been starting or stopping the embedded PostgreSQL in ${folder.path} ` +
          `for more than ${lockWaitMs / 1000} s. Look at postgres.log in this folder, or end that process.`,
      );
    }
    await sleep(lockPollMs);
  }
}

function create(folder: DataFolder, locks: string, number: number): boolean {
  const draft = join(locks, `draft-${process.pid}-${randomUUID()}`);
  writePrivate(folder, draft, JSON.stringify(ownMark()));
  try {
    linkSync(draft, join(locks, String(number)));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  // Another process may have taken this number, and deleted its file, since we looked.
  if (highest(locks) !== number) {
    rmSync(join(locks, String(number)), { force: true });
    return false;
  }
  removeOld(locks, number);
  return true;
}

function release(folder: DataFolder, locks: string, number: number): void {
  const draft = join(locks, `draft-${process.pid}-${randomUUID()}`);
  writePrivate(folder, draft, "released");
  renameSync(draft, join(locks, String(number)));
}

function highest(locks: string): number {
  let top = 0;
  for (const name of readdirSync(locks)) if (/^\d+$/.test(name)) top = Math.max(top, Number(name));
  return top;
}

/** Null: it was released, or its process has ended and another one has already replaced it. */
function readHolder(path: string): ProcessMark | null {
  try {
    const text = readFileSync(path, "utf8");
    return text === "released" ? null : (JSON.parse(text) as ProcessMark);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

function removeOld(locks: string, number: number): void {
  for (const name of readdirSync(locks)) {
    const draftOf = /^draft-(\d+)-/.exec(name)?.[1];
    const old = /^\d+$/.test(name) && Number(name) < number;
    const abandoned = draftOf !== undefined && !isAlive({ pid: Number(draftOf), startedAt: "" });
    if (old || abandoned) rmSync(join(locks, name), { force: true });
  }
}
