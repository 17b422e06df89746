import assert from "node:assert/strict";
import { test } from "node:test";
import { lockRemedy, withoutLockRemedy } from "#domain/labels/states.ts";

const remedy = lockRemedy("2026-11-28T12:40:39.953Z", "cred_0VcGcrkxEBHSFQ33alpOxc74DNwZ");

test("a failure is shown in the dashboard without the command and the time of its remedy, wherever it stands", () => {
  assert.equal(
    withoutLockRemedy(`step 2: got 401 (2 rejected logins in a row: no further one is tried. ${remedy})`),
    "step 2: got 401 (2 rejected logins in a row: no further one is tried.)",
  );
  assert.equal(withoutLockRemedy(`strat_a: not tried. ${remedy}`), "strat_a: not tried.");
});

test("other failures are shown as they are", () => {
  assert.equal(withoutLockRemedy("expected status 204, got 401"), "expected status 204, got 401");
});
