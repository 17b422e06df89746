import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { openPool, type Database } from "#db/connection/pool.ts";
import { eventually } from "../eventually.ts";
import { postmasterOf } from "../postmaster.ts";

/** Why no small disk can be mounted here; false: one can. */
export const whyNoSmallDisk = process.getuid?.() === 0 ? false : "needs root, to mount a small disk";

const ENDS_MS = 60_000;

/** A small disk at this folder. */
export interface SmallDisk extends Disposable {
  /** Takes all the room that there is. */
  fill(): void;
  makeRoom(): void;
}

export function mountSmallDisk(folder: string, megabytes: number): SmallDisk {
  mkdirSync(folder);
  return mount(folder, megabytes, "mode=0755");
}

/** The same with what the folder has, which nobody uses just now. */
export function moveToSmallDisk(folder: string, megabytes: number): SmallDisk {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, gid, mode } = statSync(folder);
  const before = `${folder}.before`;
  renameSync(folder, before);
  mkdirSync(folder);
  const disk = mount(folder, megabytes, `uid=${uid},gid=${gid},mode=${(mode & 0o777).toString(8)}`);
  execFileSync("cp", ["-a", `${before}/.`, folder]);
  rmSync(before, { recursive: true });
  return disk;
}

function mount(folder: string, megabytes: number, options: string): SmallDisk {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,${options}`, "tmpfs", folder]);
  const guard = unmountWithProcess(folder);
  const filler = join(folder, "filler");
  return {
    fill: () => {
      const { bavail, bsize } = statfsSync(folder);
      try {
        writeFileSync(filler, Buffer.alloc(bavail * bsize), { flag: "a" });
      } catch {
        // Others have written meanwhile: it is full all the same.
      }
    },
    makeRoom: () => rmSync(filler),
    [Symbol.dispose]: () => {
      guard.kill("SIGKILL");
      execFileSync("umount", ["--lazy", folder]);
    },
  };
}

/** However the test's process ends, its mounts end with it: the pipe of this process is closed then. */
function unmountWithProcess(folder: string): ChildProcess {
  const guard = spawn("sh", ["-c", 'cat; exec umount --lazy "$1"', "sh", folder], {
    // An interrupt at the terminal goes to the test alone.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.unref();
  (guard.stdin as Socket).unref();
  return guard;
}

/** Ends the server of a data folder whose log finds no room, as its owner, who may make the log switch. */
export async function endOnFullLog(dataFolder: string): Promise<void> {
  const { port, socketFolder } = postmasterOf(dataFolder);
  const password = readFileSync(join(dataFolder, "postgres-password"), "utf8");
  const db = openPool(
    { host: socketFolder, port, user: "latchkey", password, database: "latchkey" },
    { applicationName: "test" },
  );
  await exhaustLog(db);
  await db.end();
}

/** Makes a server need new files for its log, until it has found no room for one and has ended. It uses those first that it has. */
export async function exhaustLog(db: Database): Promise<void> {
  await eventually(
    "it has ended",
    async () =>
      await db
        .query("select pg_logical_emit_message(false, 'test', repeat('x', 100000)), pg_switch_wal()")
        .then(
          () => undefined,
          () => true as const,
        ),
    ENDS_MS,
  );
}
