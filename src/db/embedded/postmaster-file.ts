import { readFileSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "#lib/process-mark.ts";

/** `postmaster.pid`: its lines are pid, data folder, start time, port, socket folder, address, shared memory, state. */
export type Postmaster = { pid: number; port: number; socketFolder: string; state: string };

export type Found =
  | { kind: "none" }
  /** The pid in a left-over file now belongs to a process that is not a server of this folder. */
  | { kind: "stale"; pid: number }
  | { kind: "running"; postmaster: Postmaster };

export function findPostmaster(clusterPath: string): Found {
  const postmaster = readPostmaster(clusterPath);
  if (postmaster === null) return { kind: "none" };
  if (!isRunning(postmaster.pid)) return { kind: "none" };
  return worksIn(postmaster.pid, clusterPath)
    ? { kind: "running", postmaster }
    : { kind: "stale", pid: postmaster.pid };
}

function readPostmaster(clusterPath: string): Postmaster | null {
  let text: string;
  try {
    text = readFileSync(join(clusterPath, "postmaster.pid"), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return null;
    throw error;
  }
  const [pid = "", , , port = "", socketFolder = "", , , state = ""] = text.split("\n");
  if (!/^\d+$/.test(pid.trim())) return null;
  return { pid: Number(pid), port: Number(port), socketFolder: socketFolder.trim(), state: state.trim() };
}

/** A server's working directory is its data folder. That of another user's process is hidden; then only its name is compared. */
function worksIn(pid: number, clusterPath: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(clusterPath);
  } catch {
    return nameOf(pid) === "postgres";
  }
}

/** Without /proc (another system than Linux) we believe the file. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "postgres";
  }
}
