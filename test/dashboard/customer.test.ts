/** Whose run a list says it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { customerOf, othersOf } from "#domain/labels/customer.ts";
import { failureLine, runOutcomeName } from "#domain/labels/states.ts";
import { countWithErrors } from "#domain/records-with-errors.ts";
import { tallyLine } from "#domain/node-tally.ts";
import { runTitle } from "../../ui/parts/run-title.ts";

test("the customer is the metadata `customer`, or a name of it, or its id", () => {
  assert.equal(customerOf({ order: "12", customer: "Eastfield" }), "Eastfield");
  assert.equal(customerOf({ customer_id: "c_9", customer_name: "Eastfield" }), "Eastfield");
  assert.equal(customerOf({ customer_id: "c_9" }), "c_9");
  assert.equal(customerOf({ order: "12", customers: "all" }), null);
});

test("the other metadata is what is left, also where it has the same value", () => {
  assert.deepEqual(othersOf({ customer: "Eastfield", site: "Eastfield", order: "12" }), [
    ["site", "Eastfield"],
    ["order", "12"],
  ]);
  assert.deepEqual(othersOf({ order: "12" }), [["order", "12"]]);
});

test("a run without a name is a test login, or its id", () => {
  const id = "run_0VrJ000000000000TqN5";
  assert.equal(runTitle({ name: "Invoices", blueprint: null, tested: null, id }), "Invoices");
  assert.equal(runTitle({ name: null, blueprint: null, tested: null, id }), "Test login");
  assert.equal(runTitle({ name: null, blueprint: null, tested: "Portal", id }), "Test login of Portal");
  assert.equal(
    runTitle({ name: null, blueprint: null, tested: "Portal", is_sign_in: true, id }),
    "Sign-in of Portal",
  );
  assert.equal(runTitle({ name: null, blueprint: "invoices", tested: null, id }), "run_0VrJ…TqN5");
});

test("a line says what happened, without where", () => {
  assert.equal(failureLine("Node rows: The value is not JSON."), "Not valid JSON");
  assert.equal(
    failureLine("strat_portal: login step 2 (POST /login): expected status 204, got 401"),
    "Answered 401, not 204",
  );
  assert.equal(failureLine("Node read took longer than 10s."), "Node read took longer than 10s");
});

test("a list tells a completed run with errors and a refused sign-in from other runs", () => {
  const run = {
    status: "completed",
    progress_step: "completed",
    failure: null,
    is_sign_in: false,
    records_with_errors: null,
  } as const;
  assert.equal(runOutcomeName(run), "Completed");
  assert.equal(runOutcomeName({ ...run, records_with_errors: 1_048 }), "Completed, 1,048 with errors");
  const failed = { ...run, status: "failed", failure: "login" } as const;
  assert.equal(runOutcomeName(failed), "Login failed");
  assert.equal(runOutcomeName({ ...failed, is_sign_in: true }), "Login refused at sign-in");
  assert.equal(runOutcomeName({ ...failed, failure: "target", is_sign_in: true }), "Target failed");
});

test("a run's errors are those that its last counted node has passed on", () => {
  const node = (name: string, toMs: number, valid: number): string =>
    tallyLine({ node: name, state: "done", fromMs: 0, toMs, total: 10, valid });
  const step = { endedAt: new Date(5), recordsTotal: 10, recordsValid: 10 };
  assert.equal(countWithErrors([], []), null);
  assert.equal(countWithErrors([step], [node("checked", 3, 7)]), 0);
  assert.equal(countWithErrors([step], [node("checked", 6, 7)]), 3);
  assert.equal(countWithErrors([], [node("rows", 6, 10) + node("checked", 6, 7)]), 3);
  assert.equal(countWithErrors([{ ...step, recordsValid: null }], []), null);
});
