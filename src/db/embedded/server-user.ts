import type { SpawnOptions } from "node:child_process";
import { spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { copyBinaries } from "./binaries.ts";
import type { DataFolder } from "./data-folder.ts";

/**
 * The user that PostgreSQL runs as: it refuses root (docs/decisions/0002).
 * - `prefix`: a command to prepend (for a user namespace in which we are `nobody`);
 * - `become`: the ids to spawn it with;
 * - `owner`: the required owner of its files, null if we can't change the owner (not root).
 */
export type ServerUser = {
  name: string;
  prefix: readonly string[];
  become: { uid: number; gid: number } | null;
  owner: { uid: number; gid: number } | null;
};

const nobody = { uid: 65534, gid: 65534 };
const probeTimeoutMs = 10_000;
const unsharePaths = ["/usr/bin/unshare", "/bin/unshare", "/usr/local/bin/unshare"];

/** Tries the applicable methods, the simplest first, and returns the first one that works, with its binaries. */
export async function chooseServerUser(
  folder: DataFolder,
  binaries: Binaries,
  native: string,
): Promise<{ user: ServerUser; binaries: Binaries }> {
  for (const user of candidates(folder)) {
    if (user.become?.uid === nobody.uid && folder.owner === null) letUserNobodyEnter(folder);
    const found = await probe(user, folder, binaries.postgres);
    if (found === "works") return { user, binaries };
    if (found === "no binaries") {
      const copy = copyBinaries(native, folder);
      if ((await probe(user, folder, copy.postgres)) === "works") return { user, binaries: copy };
    }
  }
  throw await noServerUserError(folder, binaries);
}

/** Chowns the cluster when it belongs to another than the server's user. Only root can and does. */
export function changeOwner(user: ServerUser, path: string): void {
  if (user.owner === null || statSync(path).uid === user.owner.uid) return;
  // The top folder is last, so that an interrupted chown is repeated.
  for (const name of readdirSync(path, { recursive: true, encoding: "utf8" })) {
    const entry = join(path, name);
    if (!lstatSync(entry).isSymbolicLink()) chownSync(entry, user.owner.uid, user.owner.gid);
  }
  chownSync(path, user.owner.uid, user.owner.gid);
}

/** Command, arguments and options to spawn a program of PostgreSQL as its user. */
export function commandFor(
  user: ServerUser,
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): { file: string; args: string[]; options: SpawnOptions } {
  const [file = program, ...rest] = [...user.prefix, program, ...args];
  // Our environment contains secrets, so PostgreSQL gets none of it. Any user can enter `/`.
  const options: SpawnOptions = { cwd: "/", env: { LC_ALL: "C", PATH: "/usr/bin:/bin", ...environment } };
  return { file, args: rest, options: user.become === null ? options : { ...options, ...user.become } };
}

function candidates(folder: DataFolder): ServerUser[] {
  const unshare = unsharePaths.find((path) => existsSync(path));
  const asNobody =
    unshare === undefined ? [] : [unshare, "--user", "--map-user=65534", "--map-group=65534", "--"];
  const namespace = (owner: ServerUser["owner"]): ServerUser[] =>
    asNobody.length === 0
      ? []
      : [{ name: "nobody in a user namespace", prefix: asNobody, become: null, owner }];

  if (process.getuid?.() !== 0) {
    const plain: ServerUser = { name: "this user", prefix: [], become: null, owner: null };
    // initdb looks its user up; a container may run as a number that has no name.
    return hasName() ? [plain] : [...namespace(null), plain];
  }
  if (folder.owner !== null) {
    return [
      {
        name: `the data folder's owner (uid ${folder.owner.uid})`,
        prefix: [],
        become: folder.owner,
        owner: folder.owner,
      },
    ];
  }
  return [...namespace({ uid: 0, gid: 0 }), { name: "nobody", prefix: [], become: nobody, owner: nobody }];
}

function hasName(): boolean {
  try {
    return userInfo().username !== "";
  } catch {
    return false;
  }
}

/** Enter, not list: the data folder's other files are 0600 and root's. */
function letUserNobodyEnter(folder: DataFolder): void {
  const { mode, gid } = statSync(folder.path);
  if ((mode & 0o001) !== 0 || ((mode & 0o010) !== 0 && gid === nobody.gid)) return;
  chownSync(folder.path, 0, nobody.gid);
  chmodSync(folder.path, (mode & 0o700) | 0o010);
}

async function probe(
  user: ServerUser,
  folder: DataFolder,
  postgres: string,
): Promise<"works" | "no folder" | "no binaries" | "no way"> {
  const script = 'test -x "$1" || exit 3; "$2" --version >/dev/null 2>&1 || exit 4; exit 0';
  const code = await run(user, "/bin/sh", ["-c", script, "sh", folder.path, postgres]);
  if (code === 0) return "works";
  return code === 3 ? "no folder" : code === 4 ? "no binaries" : "no way";
}

/** Exit code; null when it could not be started at all. */
function run(user: ServerUser, program: string, args: string[]): Promise<number | null> {
  return new Promise((resolve) => {
    try {
      const { file, args: all, options } = commandFor(user, program, args);
      const child = spawn(file, all, {
        ...options,
        stdio: "ignore",
        timeout: probeTimeoutMs,
        killSignal: "SIGKILL",
      });
      child.on("error", () => resolve(null));
      child.on("close", (code) => resolve(code));
    } catch {
      resolve(null); // spawn throws where a sandbox forbids to change the user
    }
  });
}

async function noServerUserError(folder: DataFolder, binaries: Binaries): Promise<Error> {
  const last = candidates(folder).at(-1);
  const who = last?.name ?? "any user";
  const remedy =
    "Choose a data folder that this user can enter, run the service as an ordinary user, " +
    "or set DATABASE_URL to use a PostgreSQL of your own.";
  if (last !== undefined) {
    if ((await run(last, "/bin/sh", ["-c", "exit 0"])) !== 0) {
      return new Error(
        `The embedded PostgreSQL does not run as root, and no process can be started as ${who} here. ${remedy}`,
      );
    }
    for (const path of ancestors(folder.path)) {
      if ((await run(last, "/bin/sh", ["-c", 'test -x "$1"', "sh", path])) === 0) continue;
      return new Error(`The embedded PostgreSQL would run as ${who}, who can't enter ${path}. ${remedy}`);
    }
  }
  return new Error(
    `The embedded PostgreSQL can't be run as ${who}: ${binaries.postgres} does not start ` +
      `(damaged, made for another system, or on a file system mounted noexec). ${remedy}`,
  );
}

function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [...ancestors(parent), path];
}
