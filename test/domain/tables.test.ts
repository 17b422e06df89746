import assert from "node:assert/strict";
import { test } from "node:test";
import {
  projectSession,
  SESSION_STATUSES,
  SESSION_TRANSITIONS,
  type CredentialSession,
} from "#domain/credential-session.ts";
import { parseDuration } from "#domain/duration.ts";
import { checkIdempotencyKey, fingerprint } from "#domain/idempotency.ts";
import { isId, readRunReference } from "#domain/ids.ts";
import { PROBLEM_STATUS } from "#domain/problem.ts";
import { decideDelivery, estimateResponseBytes } from "#domain/run-results.ts";
import { COMMON_NODE_KEYS } from "#domain/blueprint.ts";
import { commonNodeKeys } from "#domain/config-schema.ts";
import { isWellFormedApiKey, newApiKey } from "#lib/api-key.ts";
import { canonicalJsonText, JsonTextError, parseJsonText, writeJsonText } from "#lib/json-text.ts";
import { newId } from "#lib/new-id.ts";

const BOUNDS = { depthMax: 64, valuesMax: 250_000 };

test("Spec, Credential session `status`: pending, completed, expired; the last two are terminal", () => {
  assert.deepEqual([...SESSION_STATUSES], ["pending", "completed", "expired"]);
  assert.deepEqual(SESSION_TRANSITIONS, { pending: ["completed", "expired"], completed: [], expired: [] });
});

test("Spec, Credential session: nine fields, hosted_url only while pending, credential_id only when completed", () => {
  const at = new Date("2026-11-21T07:08:09.123Z");
  const session: CredentialSession = {
    id: "sess_1",
    status: "pending",
    returnUrl: null,
    strategyId: "strat_x",
    credentialId: "cred_1",
    expiresAt: at,
    completedAt: null,
    createdAt: at,
    metadata: null,
    cancelUrl: null,
  };
  const shown = projectSession(session, "https://x/connect/t");
  assert.deepEqual(Object.keys(shown), [
    "id",
    "status",
    "hosted_url",
    "return_url",
    "strategy_id",
    "credential_id",
    "expires_at",
    "completed_at",
    "created_at",
  ]);
  assert.deepEqual(
    [shown.hosted_url, shown.credential_id, shown.return_url],
    ["https://x/connect/t", null, null],
  );
  const completed = projectSession({ ...session, status: "completed" }, "https://x/connect/t");
  assert.deepEqual([completed.hosted_url, completed.credential_id], [null, "cred_1"]);
  assert.equal(projectSession({ ...session, status: "expired" }, "u").hosted_url, null);
});

test("Spec, Errors: every type has the status of its row", () => {
  assert.deepEqual(PROBLEM_STATUS, {
    authentication_error: 401,
    authorization_error: 403,
    not_found: 404,
    conflict: 409,
    validation_error: 422,
    rate_limit_exceeded: 429,
    internal_error: 500,
  });
});

test("Spec, GET /blueprint-runs/{runId}/results 1: direct below 5 MB, presigned from 5 MB and when nothing was asked", () => {
  assert.equal(decideDelivery("direct", 4_999_999), "direct");
  assert.equal(decideDelivery("direct", 5_000_000), "presigned_url");
  assert.equal(decideDelivery("presigned_url", 10), "presigned_url");
  assert.equal(decideDelivery(undefined, 10), "presigned_url");
  const one = { key: "out", totalRecords: 1, jsonBytes: 1_000, blobKey: "b" };
  assert.ok(estimateResponseBytes([one], 100) > 1_100);
});

test("ids: made ones are recognised, malformed ones never reach the database", () => {
  const id = newId("run_");
  assert.equal(isId("run", id), true);
  assert.deepEqual(readRunReference(id), { id });
  assert.deepEqual(readRunReference("01A1FDB4-B85B-7F30-8DB0-5B1B6CC1CE66"), {
    runKey: "01a1fdb4-b85b-7f30-8db0-5b1b6cc1ce66",
  });
  for (const text of [
    "",
    "run_",
    "run_short",
    `${id}'`,
    `cred_${id.slice(4)}`,
    "' or 1=1 --",
    `${id}\u0000`,
  ]) {
    assert.equal(readRunReference(text), undefined, text);
  }
  assert.equal(new Set(Array.from({ length: 10_000 }, () => newId("x_"))).size, 10_000);
});

test("API keys carry a checksum: one changed character is no key", () => {
  const key = newApiKey();
  assert.match(key, /^lk_[0-9A-Za-z]{38}$/);
  assert.equal(isWellFormedApiKey(key), true);
  for (let index = 3; index < key.length; index++) {
    const changed = key.slice(0, index) + (key[index] === "a" ? "b" : "a") + key.slice(index + 1);
    assert.equal(isWellFormedApiKey(changed), false, `position ${index}`);
  }
});

test("Spec, Limits: an idempotency key has 1 to 255 characters, counted as code points, and is sent once", () => {
  assert.equal(checkIdempotencyKey(["k"]), null);
  assert.equal(checkIdempotencyKey(["😀".repeat(255)]), null);
  for (const bad of [[""], ["   "], ["x".repeat(256)], ["a", "a"]])
    assert.notEqual(checkIdempotencyKey(bad), null);
});

const print = (json: string): string => canonicalJsonText(parseJsonText(json, BOUNDS));

test("fingerprints: white space, key order and escapes don't count; digits, methods and paths do", () => {
  assert.equal(print('{"b":1, "a":"\\u00e9"}'), print('{ "a":"é","b":1}'));
  assert.notEqual(print("[9007199254740993]"), print("[9007199254740992]"));
  assert.notEqual(print("[1]"), print("[1.0]"));
  assert.notEqual(print('["1"]'), print("[1]"));
  const of = (method: string, path: string[], canonical: string) =>
    fingerprint(method, path, { kind: "json", canonical }).toString("hex");
  assert.notEqual(of("POST", ["a", "b"], "{}"), of("POST", ["a/b"], "{}"));
  assert.notEqual(of("POST", ["a"], "{}"), of("DELETE", ["a"], "{}"));
  const part = { name: "f", indexInName: 0, filename: "x", contentType: null, sha256: "00" };
  const other = { ...part, name: "g" };
  const parts = (...list: (typeof part)[]) =>
    fingerprint("POST", [], { kind: "multipart", parts: list }).toString("hex");
  assert.equal(parts(part, other), parts(other, part));
  assert.notEqual(parts(part), parts({ ...part, sha256: "01" }));
});

test("JSON keeps digits and names, and is refused by depth and size before it costs anything", () => {
  const text = '{"__proto__":{"x":1e400},"n":9007199254740993,"s":"\\u0000é","l":[1.0,-0,null,true]}';
  assert.equal(writeJsonText(parseJsonText(text, BOUNDS)), text);
  const reason = (json: string): string => {
    try {
      parseJsonText(json, BOUNDS);
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof JsonTextError);
      return error.reason;
    }
  };
  assert.equal(reason("[".repeat(65) + "]".repeat(65)), "depth");
  assert.equal(reason("[".repeat(64) + "]".repeat(64)), "accepted");
  assert.equal(reason(`[${"1,".repeat(250_000)}1]`), "values");
  assert.equal(reason('{"a":"\\ud800"}'), "surrogate");
  assert.equal(reason('{"\\ud800":1}'), "surrogate");
  assert.equal(reason("{"), "syntax");
  const cpuBefore = process.threadCpuUsage();
  assert.equal(reason("[".repeat(5_000_000)), "depth");
  const { user, system } = process.threadCpuUsage(cpuBefore);
  assert.ok(user + system < 100_000, `${user + system} µs`);
});

test("durations", () => {
  assert.deepEqual(
    ["500ms", "30s", "10m", "2h", "7d", "1.5h", 0, "0"].map((value) => parseDuration(value)),
    [500, 30_000, 600_000, 7_200_000, 604_800_000, 5_400_000, 0, 0],
  );
  for (const wrong of ["", "7", 7, "7 d", "-1s", "1w", "1e3s", null, []])
    assert.equal(parseDuration(wrong), undefined);
});

test("the keys that every node may have are those that the schema of documents knows", () => {
  assert.deepEqual([...COMMON_NODE_KEYS].sort(), Object.keys(commonNodeKeys).sort());
});
