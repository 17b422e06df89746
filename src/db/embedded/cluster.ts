import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Binaries } from "./binaries.ts";
import type { DataFolder } from "./data-folder.ts";
import { folderError, readIfExists, writePrivate } from "./data-folder.ts";
import type { ServerUser } from "./server-user.ts";
import { commandFor, changeOwner } from "./server-user.ts";
import { initdbArguments } from "./settings.ts";

/** PostgreSQL's own folder and its superuser, who owns everything in it. */
export type Cluster = { path: string; user: string; password: string };

export const roleName = "latchkey";
const passwordName = "postgres-password";
const initdbTimeoutMs = 120_000;

export function clusterPath(folder: DataFolder): string {
  return join(folder.path, "postgres");
}

/** The cluster of this data folder, which is created if there is none yet. The folder's lock must be held. */
export async function openCluster(
  folder: DataFolder,
  user: ServerUser,
  binaries: Binaries,
  socketFolder: string,
): Promise<Cluster> {
  const path = clusterPath(folder);
  if (!existsSync(path) || readdirSync(path).length === 0) await create(folder, user, binaries, socketFolder);
  checkVersion(path, binaries.major);
  changeOwner(user, path);
  checkOwner(path, user);
  return { path, user: roleName, password: readPassword(folder) };
}

export function readPassword(folder: DataFolder): string {
  const password = readIfExists(folder, passwordName);
  if (password !== null && password !== "") return password;
  throw new Error(
    `The password of the embedded PostgreSQL is missing: ${join(folder.path, passwordName)}. ` +
      "Restore this file from a backup of the data folder.",
  );
}

/** Created under a temporary name and renamed when complete, so that a crash leaves nothing incomplete. */
async function create(
  folder: DataFolder,
  user: ServerUser,
  binaries: Binaries,
  socketFolder: string,
): Promise<void> {
  const draft = `${clusterPath(folder)}.new`;
  const password = randomBytes(32).toString("base64url");
  // initdb runs as the server's user, who can't read our files, so it gets the password in the socket's folder.
  const passwordFile = join(socketFolder, "initdb-password");
  try {
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { mode: 0o700 });
    changeOwner(user, draft);
    writePrivate({ ...folder, owner: user.owner }, passwordFile, password);
    await initdb(user, binaries, initdbArguments(draft, roleName, passwordFile), folder);
    writePrivate(folder, join(folder.path, passwordName), password);
    chmodSync(join(folder.path, passwordName), 0o600);
    renameSync(draft, clusterPath(folder));
  } catch (error) {
    throw error instanceof Error && "code" in error ? folderError(folder.path, error) : error;
  } finally {
    rmSync(passwordFile, { force: true });
    rmSync(draft, { recursive: true, force: true });
  }
}

async function initdb(
  user: ServerUser,
  binaries: Binaries,
  args: string[],
  folder: DataFolder,
): Promise<void> {
  const { file, args: all, options } = commandFor(user, binaries.initdb, args);
  let output = "";
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(file, all, {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: initdbTimeoutMs,
    });
    child.stdout?.on("data", (chunk) => (output += String(chunk)));
    child.stderr?.on("data", (chunk) => (output += String(chunk)));
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code === 0) return;
  const lines = output.trim().split("\n").slice(-8).join("\n  ");
  throw new Error(
    `The embedded PostgreSQL could not create its database in ${folder.path} (initdb ended with ${code ?? "a signal"}):\n  ${lines}\n` +
      "Free space or correct the permissions as it says, and start again, or set DATABASE_URL to use a PostgreSQL of your own.",
  );
}

function checkVersion(path: string, major: number): void {
  const versionFile = join(path, "PG_VERSION");
  let found: string;
  try {
    found = readFileSync(versionFile, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      throw new Error(
        `${path} contains files but no PostgreSQL database (no PG_VERSION). Move it away, or choose another data folder (LATCHKEY_DATA_DIR).`,
      );
    }
    throw folderError(path, error);
  }
  if (found !== String(major)) {
    throw new Error(
      `The database in ${path} was created by PostgreSQL ${found}; this program includes PostgreSQL ${major}, which can't open it. ` +
        `Run the version of the program that created it, or move the data to a PostgreSQL of your own and set DATABASE_URL.`,
    );
  }
}

/** PostgreSQL refuses a folder of someone else; say so before it does, with the remedy. */
function checkOwner(path: string, user: ServerUser): void {
  const self = process.getuid?.();
  const owner = statSync(path).uid;
  if (user.owner !== null || self === undefined || owner === self) return;
  throw new Error(
    `The database in ${path} belongs to user ${owner}, and this is user ${self}. Run as that user, or chown the data folder.`,
  );
}
