import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { shareProcess } from "./shared-process.ts";

/** Clock ticks a second of `/proc/PID/stat`: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

const EXIT_AFTER_MS = 3_000;

/** What one test file took. */
export interface FileTime {
  /** Path in the project. */
  readonly file: string;
  /** CPU time of the file's process and of the processes that it has waited for. PostgreSQL's is not in it. */
  readonly cpuSeconds: number;
}

/**
 * Runs test files one after the other in this process, each as a suite of its own: its hooks run around its own tests. Files
 * that share a process load the program once. `times` is a file to which a line is added for each.
 */
export function runBatch(root: string, files: readonly string[], times: string): void {
  if (files.length > 1) shareProcess();
  // `require`, because node:test loses track of the suite when several files are imported at once. A file that waits at its top
  // level can't be required, and so has a process of its own.
  const load = createRequire(import.meta.url);
  // A file whose tests were given up may never end by itself. Not `--test-force-exit`: that exits before all tests were told of.
  after(() => void setTimeout(() => process.exit(), EXIT_AFTER_MS).unref());
  for (const file of files) {
    void describe(file, async () => {
      let startedAt = 0;
      before(() => {
        startedAt = cpuSecondsOf("self");
      });
      if (files.length > 1) load(join(root, file));
      else await import(join(root, file));
      // The last hook of the file: what its own hooks clean up counts too.
      after(() => {
        const line: FileTime = { file, cpuSeconds: cpuSecondsOf("self") - startedAt };
        appendFileSync(times, `${JSON.stringify(line)}\n`);
      });
    });
  }
}

/** CPU seconds of a process and of its children that were waited for. Throws when there is no such process. */
export function cpuSecondsOf(pid: number | "self"): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}
