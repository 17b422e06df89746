// ARCHITECTURE, One trigger, from HTTP to results 6: what waits and what was left begin by one path; quarantine is a condition of it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..", "src");

const filesWith = (pattern: RegExp): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && pattern.test(readFileSync(join(root, name), "utf8")))
    .toSorted();

test("a run is leased by two statements, which the taker alone sends, and executed by the worker that it gives the run to", () => {
  assert.deepEqual(filesWith(/\$\{CLAIM\}/), ["db/runs/admission.ts", "db/runs/left-runs.ts"]);
  assert.deepEqual(filesWith(/\b(?:admitRuns|claimLeftRuns)\(/), [
    "db/runs/admission.ts",
    "db/runs/left-runs.ts",
    "worker/run-taker.ts",
  ]);
  assert.deepEqual(filesWith(/\bnew RunTaker\(/), ["worker/worker.ts"]);
  assert.deepEqual(filesWith(/\bexecuteRun\(/), ["engine/execute-run.ts", "worker/worker.ts"]);
});
