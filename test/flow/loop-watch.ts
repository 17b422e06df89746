import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** How long a service's event loop kept those waiting who came while it was watched. */
export interface Waiting {
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly seconds: number;
}

/** A watch on the event loop of a service that is a process of its own. */
export interface LoopWatch {
  /** What the service must be started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** Watches while the work lasts. */
  during(work: () => Promise<unknown>): Promise<Waiting>;
}

const WRITTEN_MS = 600;

/** `folder`: where the service may write its notes. */
export function openLoopWatch(folder: string, nodeOptions = ""): LoopWatch {
  const file = join(folder, "loop.ndjson");
  const preload = join(import.meta.dirname, "watch-loop.mjs");
  return {
    environment: {
      LATCHKEY_TEST_LOOP_FILE: file,
      NODE_OPTIONS: `--import=${preload} ${nodeOptions}`.trim(),
    },
    during: async (work) => {
      const start = existsSync(file) ? statSync(file).size : 0;
      await work();
      await new Promise((resolve) => setTimeout(resolve, WRITTEN_MS));
      const lines = readFileSync(file).subarray(start).toString("utf8").trim().split("\n");
      return waitingOf(lines.map((line) => JSON.parse(line) as { ms: number; held: number[] }));
    },
  };
}

/** Of those who come one each millisecond: who comes in the middle of a turn waits for the rest of it. */
function waitingOf(notes: readonly { readonly ms: number; readonly held: readonly number[] }[]): Waiting {
  const held = notes.flatMap((note) => note.held).toSorted((a, b) => b - a);
  const totalMs = notes.reduce((sum, { ms }) => sum + ms, 0);
  const isWaitedBy = (waitMs: number): number =>
    held.reduce((sum, each) => sum + Math.max(0, each - waitMs), 0);
  let p99Ms = 0;
  while (isWaitedBy(p99Ms) > totalMs / 100) p99Ms += 1;
  return { p99Ms, longestMs: held[0] ?? 0, seconds: totalMs / 1_000 };
}
