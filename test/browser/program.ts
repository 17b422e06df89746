import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findProgram, type Program } from "../hosted/chromium.ts";

/**
 * The Chromium of the tests as a file that every user may start, for LATCHKEY_BROWSER: it sets its own variables. `edit` is a line of
 * shell that may change the arguments before they reach Chromium, to see what happens without one of them, or set PREFIX to a command
 * that starts it. `given`: another Chromium.
 */
export async function openProgram(
  edit = ":",
  given: Program | null = null,
): Promise<{ readonly path: string; remove(): void }> {
  const program = given ?? (await findProgram());
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-program-"));
  chmodSync(folder, 0o755);
  // One that was unpacked is its owner's alone.
  const unpacked = dirname(program.path);
  if (unpacked.startsWith(tmpdir()) && statSync(unpacked).uid === process.getuid?.())
    execFileSync("chmod", ["-R", "a+rX", unpacked]);
  const { HOME: _, ...environment } = program.environment;
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`);
  const path = join(folder, "chromium");
  writeFileSync(path, ["#!/bin/sh", ...exports, edit, `exec $PREFIX '${program.path}' "$@"`, ""].join("\n"), {
    mode: 0o755,
  });
  return {
    path,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
      program.remove();
    },
  };
}
