import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Binaries } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import type { DataFolder } from "./data-folder.ts";
import { answers } from "./first-connection.ts";
import type { Postmaster } from "./postmaster-file.ts";
import { findPostmaster } from "./postmaster-file.ts";
import { isRunning } from "#lib/process-mark.ts";
import type { ServerUser } from "./server-user.ts";
import { commandFor } from "./server-user.ts";
import { serverArguments } from "./settings.ts";
import { port } from "./socket-folder.ts";

const readyTimeoutMs = 120_000;
const readyPollMs = 15;
const fastStopMs = 10_000;
const immediateStopMs = 10_000;
const logBytesMax = 10 * 1024 * 1024;

/** Spawns the server and waits until it answers. Only under the folder's lock. */
export async function startServer(
  folder: DataFolder,
  cluster: Cluster,
  user: ServerUser,
  binaries: Binaries,
  socketFolder: string,
  log: (message: string) => void,
): Promise<void> {
  const logPath = join(folder.path, "postgres.log");
  const output = openLog(folder, logPath);
  const logStart = fstatSync(output).size;
  const found = findPostmaster(cluster.path);
  // After a restarted container the pid in a left-over postmaster.pid may be another process of ours, and PostgreSQL would take
  // it for a live server. It ignores a pid that is declared to be its grandparent's (a mechanism of pg_ctl), and still checks
  // that no process uses the old shared memory.
  const environment: Record<string, string> =
    found.kind === "stale" ? { PG_GRANDPARENT_PID: String(found.pid) } : {};
  const { file, args, options } = commandFor(
    user,
    binaries.postgres,
    serverArguments(cluster.path, socketFolder, port),
    environment,
  );

  // Its own process group: Ctrl-C in a terminal must not stop it before our drain.
  const child = spawn(file, args, { ...options, detached: true, stdio: ["ignore", output, output] });
  closeSync(output);
  let ended: string | null = null;
  child.on("error", (error) => (ended = error.message));
  child.on("exit", (code, signal) => (ended = `it ended with ${signal ?? `exit code ${code}`}`));
  child.unref();

  const startedAt = performance.now();
  let nextNoticeMs = 5_000;
  while (!(await isReady(cluster, socketFolder))) {
    if (ended !== null) throw new Error(startFailure(folder, ended, logPath, logStart));
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > readyTimeoutMs) {
      const why = `it is not ready after ${readyTimeoutMs / 1000} s but keeps running; start again to keep waiting`;
      throw new Error(startFailure(folder, why, logPath, logStart));
    }
    if (waitedMs > nextNoticeMs) {
      log("The embedded PostgreSQL is still starting (it may be recovering from a crash)");
      nextNoticeMs += 5_000;
    }
    await sleep(readyPollMs);
  }
}

/** Waits for a server that was found running. "unreachable": it says it is ready and does not answer; its socket is lost. */
export async function awaitRunning(cluster: Cluster): Promise<Postmaster | "ended" | "unreachable"> {
  const deadline = performance.now() + readyTimeoutMs;
  let refusals = 0;
  for (;;) {
    const found = findPostmaster(cluster.path);
    if (found.kind !== "running") return "ended";
    const { postmaster } = found;
    if (postmaster.state === "ready") {
      if (await answers({ host: postmaster.socketFolder, port: postmaster.port, ...cluster }))
        return postmaster;
      // It says "ready" a moment before a shutdown, too: only a lasting refusal is a lost socket.
      refusals += 1;
      if (refusals >= 40) return "unreachable";
    }
    if (performance.now() > deadline) {
      throw new Error(
        `The embedded PostgreSQL (process ${postmaster.pid}) runs but is not ready after ${readyTimeoutMs / 1000} s (${postmaster.state}): ` +
          `it may be recovering from a crash. Look at postgres.log beside ${cluster.path}, and start again to keep waiting.`,
      );
    }
    await sleep(50);
  }
}

/** Fast shutdown (clients are disconnected, everything is written), then an immediate one (recovered at the next start). */
export async function stopServer(clusterPath: string): Promise<void> {
  const found = findPostmaster(clusterPath);
  if (found.kind !== "running") return;
  const { pid } = found.postmaster;
  if (await endedAfter(pid, "SIGINT", fastStopMs)) return;
  if (await endedAfter(pid, "SIGQUIT", immediateStopMs)) return;
  throw new Error(
    `The embedded PostgreSQL (process ${pid}) does not stop. Look at postgres.log beside ${clusterPath}.`,
  );
}

async function endedAfter(pid: number, signal: "SIGINT" | "SIGQUIT", timeoutMs: number): Promise<boolean> {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return true;
    throw error;
  }
  const deadline = performance.now() + timeoutMs;
  while (isRunning(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}

async function isReady(cluster: Cluster, socketFolder: string): Promise<boolean> {
  const found = findPostmaster(cluster.path);
  if (found.kind !== "running" || found.postmaster.state !== "ready") return false;
  return answers({ host: socketFolder, port, ...cluster });
}

/** Appended to, 0600; moved aside at a start when it has grown large. */
function openLog(folder: DataFolder, path: string): number {
  if (existsSync(path) && statSync(path).size > logBytesMax) renameSync(path, `${path}.1`);
  const descriptor = openSync(path, "a", 0o600);
  chmodSync(path, 0o600);
  if (folder.owner !== null) chownSync(path, folder.owner.uid, folder.owner.gid);
  return descriptor;
}

function startFailure(folder: DataFolder, why: string, logPath: string, logStart: number): string {
  const said = readFileSync(logPath).subarray(logStart).toString("utf8").trim();
  const lines = said === "" ? "(nothing)" : said.split("\n").slice(-8).join("\n  ");
  return `The embedded PostgreSQL in ${folder.path} did not start: ${why}. It said:\n  ${lines}\n${remedyFor(said, logPath)}`;
}

function remedyFor(said: string, logPath: string): string {
  if (/No space left on device|Disk quota exceeded/.test(said))
    return "The disk is full: free space and start again.";
  if (/could not (create|map|resize) .*shared memory|Cannot allocate memory/.test(said))
    return "There is too little memory: lower shared_buffers in postgres/postgresql.conf, or give the machine or container more.";
  if (/Permission denied|has wrong ownership/.test(said))
    return "Give the data folder and all in it to the user that runs the service.";
  if (/lock file ".*" already exists|is in use|still in use/.test(said))
    return "Another server uses this folder, maybe in another container: end that one first.";
  return `The whole log is ${logPath}. With DATABASE_URL set, a PostgreSQL of your own is used instead.`;
}
