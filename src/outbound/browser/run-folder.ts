import { randomUUID } from "node:crypto";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { isAlive, ownMark, type ProcessMark } from "#lib/process-mark.ts";
import { ProcessTree } from "./process-tree.ts";

/** One browser's folder, and with it one of the numbers that browsers on this machine may have at a time. */
export interface RunFolder {
  readonly path: string;
  /** HOME of the browser, TMPDIR, and the working directory; it belongs to the browser's user. */
  readonly home: string;
  /** What the driver asks the browser to write; nothing so far. */
  readonly artifacts: string;
  /** The user and group that it runs as; null: ours. */
  readonly uid: number | null;
  remove(): Promise<void>;
}

/** Numbers that nobody else has: of systemd's range for such users (61184 to 65519). No name is needed. */
export interface UidRange {
  readonly first: number;
  readonly count: number;
}

const OWNER_FILE = "owner.json";
/** The pid of a browser's first process, which its launcher writes. */
export const PID_FILE = "pid";

const prefixOf = (): string => `latchkey-browser-${process.getuid?.() ?? 0}-`;

/**
 * Takes the first free number, for all processes of this machine: the folder has it in its name, and is put in place at once, with
 * its owner in it. Throws if all numbers are taken.
 */
export async function takeRunFolder(root: string, uids: UidRange): Promise<RunFolder> {
  const isRoot = process.getuid?.() === 0;
  const made = await mkdtemp(join(root, `${prefixOf()}new-`));
  try {
    await writeFile(join(made, OWNER_FILE), JSON.stringify(ownMark()), { mode: 0o600 });
    for (let number = 0; number < uids.count; number++) {
      const path = join(root, `${prefixOf()}${number}`);
      if (!(await put(made, path))) continue;
      const uid = isRoot ? uids.first + number : null;
      const [home, artifacts] = [join(path, "home"), join(path, "artifacts")];
      for (const folder of [home, artifacts]) {
        await mkdir(folder, { mode: 0o700 });
        if (uid !== null) await chown(folder, uid, uid);
      }
      if (uid !== null) await chown(path, 0, uid);
      await chmod(path, uid === null ? 0o700 : 0o710);
      return { path, home, artifacts, uid, remove: async () => await removeFolder(path) };
    }
  } finally {
    await removeFolder(made);
  }
  throw new Error(`All ${uids.count} numbers for browsers are taken.`);
}

/** Whether the folder is now at this path. What a process that has ended left there is removed. */
async function put(made: string, path: string): Promise<boolean> {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      await rename(made, path);
      return true;
    } catch {
      if (!(await isLeft(path)) || !(await sweepOne(path))) return false;
    }
  }
  return false;
}

/** Ends the browsers and removes the folders that processes left behind. Returns how many. */
export async function sweepRunFolders(root: string): Promise<number> {
  const names = (await readdir(root)).filter((name) => name.startsWith(prefixOf()));
  let swept = 0;
  for (const path of names.map((name) => join(root, name)))
    if ((await isLeft(path)) && (await sweepOne(path))) swept++;
  return swept;
}

/** Ours, and of a process that has ended. */
async function isLeft(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) return false;
  const owner = await readMark(path);
  return owner !== null && !isAlive(owner);
}

async function readMark(path: string): Promise<ProcessMark | null> {
  try {
    return JSON.parse(await readFile(join(path, OWNER_FILE), "utf8")) as ProcessMark;
  } catch {
    return null;
  }
}

/** Another process may be at it: only one of them can move it. */
async function sweepOne(path: string): Promise<boolean> {
  const moved = `${path}-left-${randomUUID()}`;
  try {
    await rename(path, moved);
  } catch {
    return false;
  }
  if (!(await isLeft(moved))) {
    // Taken by a living process in the meantime.
    await rename(moved, path).catch(() => undefined);
    return false;
  }
  const { pid, startedAt } = JSON.parse(
    await readFile(join(moved, PID_FILE), "utf8").catch(() => "{}"),
  ) as Partial<ProcessMark>;
  if (pid !== undefined && startedAt !== undefined && isAlive({ pid, startedAt }))
    new ProcessTree(pid).kill();
  await removeFolder(moved);
  return true;
}

async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 5 });
}
