import assert from "node:assert/strict";
import { test } from "node:test";
import { lockRemedy, withoutLockRemedy, withoutLoginPlace } from "#domain/labels/states.ts";

const remedy = lockRemedy("2026-11-28T12:40:39.953Z", "cred_0VcGcrkxEBHSFQ33alpOxc74DNwZ");

test("a failure is shown in the dashboard without the command and the time of its remedy, wherever it stands", () => {
  assert.equal(
    withoutLockRemedy(`step 2: got 401 (2 rejected logins in a row: no further one is tried. ${remedy})`),
    "step 2: got 401 (2 rejected logins in a row: no further one is tried.)",
  );
  assert.equal(withoutLockRemedy(`strat_a: not tried. ${remedy}`), "strat_a: not tried.");
});

test("a list shows what happened at a login, without the place", () => {
  assert.equal(
    withoutLoginPlace("strat_portal: login step 2 (POST /login): expected status 204, got 401"),
    "expected status 204, got 401",
  );
  assert.equal(withoutLoginPlace("strat_portal: not tried."), "not tried.");
  assert.equal(withoutLoginPlace("Node rows: The value is not JSON."), "Node rows: The value is not JSON.");
});

test("other failures are shown as they are", () => {
  assert.equal(withoutLockRemedy("expected status 204, got 401"), "expected status 204, got 401");
});
