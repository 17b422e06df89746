import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { environmentOf, observe, processesWith, ROOT, type Running } from "./program.ts";

// `npm run demo` as people run it, through npm, in a process group of its own as a terminal gives it.

const folders: string[] = [];
const groups: number[] = [];

process.once("exit", () => {
  for (const group of groups) {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // It is gone, as it should be.
    }
  }
  for (const folder of folders) {
    for (const pid of processesWith(folder)) process.kill(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

export interface Demo extends Running {
  /** The temporary directory of this demo alone: whatever it leaves is in it or names it. */
  readonly folder: string;
  readonly group: number;
}

export const NO_BROWSER = "/nowhere/chromium";

export const BY_NPM = ["npm", "run", "demo", "--"];
/** What npm runs. npm itself ends by the SIGINT that the demo has handled. */
export const BY_SCRIPT = [process.execPath, "scripts/run.mjs", "src/main.mjs", "demo"];

/** `browser`: the path of a Chromium. Without it the demo has none, whatever the machine has. */
export function startDemo([program, ...arguments_]: readonly string[], browser = NO_BROWSER): Demo {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-demo-test-"));
  folders.push(folder);
  // A browser that root starts has a user of its own, which must get in.
  chmodSync(folder, 0o755);
  const child = spawn(must(program, "program"), arguments_, {
    cwd: ROOT,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    // What a developer has set for a real service must not reach the demo.
    env: {
      ...environmentOf({}),
      TMPDIR: folder,
      npm_config_update_notifier: "false",
      LATCHKEY_DATA_DIR: "/nowhere/data",
      LATCHKEY_PORT: "80808",
      LATCHKEY_BROWSER: browser,
      DATABASE_URL: "postgresql://nobody@127.0.0.1:1/nothing",
    },
  });
  const group = must(child.pid, "pid");
  groups.push(group);
  return { ...observe(child), folder, group };
}

/** No process of it, and nothing in its temporary directory. */
export async function assertNothingLeft({ folder }: Demo): Promise<void> {
  for (let tries = 0; tries < 250 && processesWith(folder).length > 0; tries++) await sleep(20);
  assert.deepEqual(processesWith(folder), [], "processes");
  assert.deepEqual(
    readdirSync(folder).filter((name) => name !== "node-compile-cache"),
    [],
    "files",
  );
}

// What one Ctrl-C in a terminal is: SIGINT to npm, its shell, the script and the demo at once.
export const pressCtrlC = (demo: Demo): void => void process.kill(-demo.group, "SIGINT");
