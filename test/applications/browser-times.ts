import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../eventually.ts";

/** How long browsers were open, seen from outside: from the start of the program until its process is gone. */
export interface WatchedBrowsers {
  /** For `openProgram`: the program notes its process and the time at its start. */
  readonly note: string;
  forget(): void;
  /** Milliseconds of each that has started since. Waits until all of them have ended. */
  times(): Promise<readonly number[]>;
  end(): void;
}

const LOOK_MS = 10;

export function watchBrowsers(): WatchedBrowsers {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-watched-"));
  const file = join(folder, "started");
  writeFileSync(file, "");
  // Each browser has a user of its own.
  chmodSync(folder, 0o755);
  chmodSync(file, 0o666);
  const endedAt = new Map<string, number>();
  const linesOf = (): readonly string[] => readFileSync(file, "utf8").split("\n").filter(Boolean);
  const look = (): void => {
    for (const line of linesOf())
      if (!endedAt.has(line) && !existsSync(`/proc/${line.split(" ")[0]}`)) endedAt.set(line, Date.now());
  };
  const timer = setInterval(look, LOOK_MS).unref();
  return {
    // The number that the rest of the machine knows it by, whatever its own namespace calls it.
    note: `read -r pid rest < /proc/self/stat; echo "$pid $(date +%s%3N)" >> '${file}'`,
    forget: () => {
      writeFileSync(file, "");
      endedAt.clear();
    },
    times: async () => {
      await until("all browsers have ended", () => linesOf().every((line) => endedAt.has(line)));
      return linesOf().map((line) => (endedAt.get(line) ?? 0) - Number(line.split(" ")[1]));
    },
    end: () => {
      clearInterval(timer);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
