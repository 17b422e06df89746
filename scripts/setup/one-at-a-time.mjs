/** One set-up at a time: a lock folder with the owner's processes and a heartbeat. */
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readText, root, say } from "./project.mjs";

/** Longer than npm's processes are ever stopped: a lock without a heartbeat for this long is nobody's. */
const STALE_MS = 60_000;

const lockFolder = join(root, ".cache", "setup.lock");
const ownerFile = join(lockFolder, "owner.json");

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Free to take: all its processes have ended (same machine), or nobody has touched it for a minute. */
function isStale() {
  let age;
  try {
    age = Date.now() - lstatSync(existsSync(ownerFile) ? ownerFile : lockFolder).mtimeMs;
  } catch {
    return false; // it has just been released
  }
  if (age > STALE_MS) return true;
  const text = readText(ownerFile);
  if (text === undefined || text === "") return false;
  const owner = JSON.parse(text);
  return owner.host === hostname() && !owner.pids.some(isAlive);
}

/**
 * Looked at again by the one process that holds `breaking`, so that no fresh lock is removed. A `breaking`
 * whose process died is removed by age.
 */
function removeStaleLock() {
  const breaking = `${lockFolder}.breaking`;
  try {
    mkdirSync(breaking);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    const since = lstatSync(breaking, { throwIfNoEntry: false })?.mtimeMs;
    if (since !== undefined && Date.now() - since > STALE_MS)
      rmSync(breaking, { recursive: true, force: true });
    return;
  }
  try {
    if (isStale()) rmSync(lockFolder, { recursive: true, force: true });
  } finally {
    rmSync(breaking, { recursive: true, force: true });
  }
}

function hasTaken() {
  try {
    mkdirSync(lockFolder);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Takes the lock, or waits for its owner. `setPids` names the processes whose end frees it, `touch` is the
 * heartbeat.
 */
export async function takeLock() {
  mkdirSync(join(root, ".cache"), { recursive: true });
  for (let hasSaid = false; !hasTaken(); await sleep(200)) {
    if (isStale()) {
      removeStaleLock();
    } else if (!hasSaid) {
      say("latchkey: another set-up is at work, waiting for it");
      hasSaid = true;
    }
  }
  const setPids = (pids) => {
    const temporary = `${ownerFile}.new`;
    writeFileSync(temporary, JSON.stringify({ host: hostname(), pids }));
    renameSync(temporary, ownerFile);
  };
  setPids([process.pid]);
  return {
    setPids,
    touch: () => utimesSync(ownerFile, new Date(), new Date()),
    release: () => rmSync(lockFolder, { recursive: true, force: true }),
  };
}
