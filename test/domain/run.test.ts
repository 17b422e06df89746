import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BUILT_IN_STEPS,
  projectRun,
  RUN_ERROR,
  RUN_STATUSES,
  RUN_STEPS,
  RUN_TRANSITIONS,
  runStatusesBefore,
  TERMINAL_RUN_STATUSES,
  type RunProjection,
} from "#domain/run.ts";

test("Spec, Blueprint run `status`: the five statuses, of which three are terminal", () => {
  assert.deepEqual([...RUN_STATUSES], ["queued", "running", "completed", "failed", "cancelled"]);
  assert.deepEqual(TERMINAL_RUN_STATUSES, ["completed", "failed", "cancelled"]);
});

test("Spec, Blueprint run `status`: each status shows the steps of its row, and all eight are known", () => {
  assert.deepEqual(RUN_STEPS, {
    queued: ["queued", "authenticating"],
    running: ["running", "awaiting_review"],
    completed: ["completed"],
    failed: ["failed"],
    cancelled: ["cancelled"],
  });
  assert.deepEqual(
    [...BUILT_IN_STEPS].sort((a, b) => a.localeCompare(b)),
    ["authenticating", "awaiting_review", "cancelled", "completed", "failed", "queued", "running", "unknown"],
  );
});

test("a run never leaves a terminal status, and completes only from running", () => {
  for (const status of TERMINAL_RUN_STATUSES) assert.deepEqual(RUN_TRANSITIONS[status], []);
  assert.deepEqual(runStatusesBefore("completed"), ["running"]);
  assert.deepEqual(runStatusesBefore("running"), ["queued"]);
  assert.deepEqual(runStatusesBefore("failed"), ["queued", "running"]);
  assert.deepEqual(runStatusesBefore("cancelled"), ["queued", "running"]);
  assert.deepEqual(runStatusesBefore("queued"), []);
});

const RUN: RunProjection = {
  id: "run_1",
  runKey: "01a1fdb4-b85b-7f30-8db0-5b1b6cc1ce66",
  status: "running",
  progressStep: "running",
  createdAt: new Date("2026-11-21T07:08:09.120Z"),
  startedAt: new Date("2026-11-21T07:08:10Z"),
  endedAt: null,
  blueprintId: "bp_1",
};

test("Spec, Run status projection: exactly nine fields, timestamps with milliseconds", () => {
  assert.deepEqual(projectRun(RUN), {
    id: "run_1",
    run_key: "01a1fdb4-b85b-7f30-8db0-5b1b6cc1ce66",
    status: "running",
    progress_step: "running",
    created_at: "2026-11-21T07:08:09.120Z",
    started_at: "2026-11-21T07:08:10.000Z",
    ended_at: null,
    error: null,
    blueprint_id: "bp_1",
  });
});

// Spec, Errors: "Causes of failure (expired credentials, missing template, validation failure)"
test("Spec, Run terminal errors: only a failed run has an error, with the one code and the one sentence", () => {
  for (const status of RUN_STATUSES) {
    const { error } = projectRun({ ...RUN, status });
    if (status === "failed") assert.deepEqual(error, RUN_ERROR);
    else assert.equal(error, null);
  }
});

test("a milestone is shown by its name, and what is no step as `unknown`", () => {
  assert.equal(projectRun({ ...RUN, progressStep: "reading_invoices" }).progress_step, "reading_invoices");
  for (const step of ["", "Reading", "two words", "1st", "x".repeat(65), "\u0000"]) {
    assert.equal(projectRun({ ...RUN, progressStep: step }).progress_step, "unknown");
  }
});
