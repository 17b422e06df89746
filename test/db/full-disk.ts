import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "#db/connection/pool.ts";
import { eventually } from "../eventually.ts";

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
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0755`, "tmpfs", folder]);
  const filler = join(folder, "filler");
  return {
    fill: () => {
      const { bavail, bsize } = statfsSync(folder);
      try {
        writeFileSync(filler, Buffer.alloc(bavail * bsize));
      } catch {
        // Others have written meanwhile: it is full all the same.
      }
    },
    makeRoom: () => rmSync(filler),
    [Symbol.dispose]: () => void execFileSync("umount", ["--lazy", folder]),
  };
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
