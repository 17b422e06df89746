import assert from "node:assert/strict";
import { test } from "node:test";
import type { CredentialSessionBody } from "../../scripts/generate/public-api/credential-sessions.ts";
import type { RunStatusBody } from "../../scripts/generate/public-api/blueprint-runs.ts";
import { EXAMPLE } from "#contract/fields.ts";
import { projectSession } from "#domain/credential-session.ts";
import { projectRun } from "#domain/run.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import { expectContract, expectSchema } from "./expect-contract.ts";

const AT = new Date("2026-11-21T07:08:09.120Z");

const session: CredentialSessionBody = projectSession(
  {
    id: newId("sess_"),
    status: "completed",
    returnUrl: "https://app.example.com/",
    strategyId: EXAMPLE.strategy,
    credentialId: newId("cred_"),
    expiresAt: AT,
    completedAt: AT,
    createdAt: AT,
    metadata: '{"order":"4711"}',
    cancelUrl: "https://app.example.com/connections",
  },
  "https://connect.example.com/connect/TOKEN",
);

const run: RunStatusBody = projectRun({
  id: newId("run_"),
  runKey: newRunKey(),
  status: "failed",
  progressStep: "failed",
  createdAt: AT,
  startedAt: null,
  endedAt: AT,
  blueprintId: newId("bp_"),
});

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

test("what the domain projects has the contract's types, and passes its closed schemas", () => {
  expectSchema("session", ref("CredentialSession"), session);
  expectSchema("run", ref("RunStatus"), run);
});

const answer = (status: number, body: unknown, headers: Record<string, string> = {}) => ({
  status,
  text: body === undefined ? "" : JSON.stringify(body),
  headers: new Headers({
    ...(body === undefined ? {} : { "content-type": "application/json; charset=utf-8" }),
    "cache-control": "no-store",
    "x-request-id": newId("req_"),
    ...headers,
  }),
});

test("a right answer passes", () => {
  expectContract("readCredentialSession", answer(200, session));
  expectContract("createCredentialSession", answer(201, session, { "Idempotent-Replay": "true" }));
  expectContract("readRunStatus", answer(200, run));
  expectContract("deleteCredential", answer(204, undefined));
  const detail = { message: "m", code: null, field: "return_url" };
  expectContract(
    "triggerBlueprint",
    answer(422, { error: { type: "validation_error", message: "m", details: [detail] } }),
  );
});

const { completed_at: _left, ...shorter } = session;
const error = (type: string, more: object = {}) => ({ error: { type, message: "m", ...more } });
const READ = "readCredentialSession";

/** Each is one thing wrong with an otherwise right answer. */
const WRONG: readonly (readonly [what: string, operation: string, answer: ReturnType<typeof answer>])[] = [
  ["a key too many", READ, answer(200, { ...session, name: "x" })],
  ["a missing key", READ, answer(200, shorter)],
  ["a status that we don't have", READ, answer(200, { ...session, status: "verifying" })],
  ["a timestamp without milliseconds", READ, answer(200, { ...session, created_at: "2026-11-21T07:08:09Z" })],
  ["an id with another prefix", READ, answer(200, { ...session, id: session.id.replace("sess_", "cred_") })],
  ["null where there is none", READ, answer(200, { ...session, expires_at: null })],
  ["a status that the operation does not answer", READ, answer(409, error("conflict"))],
  ["a success wrapper", READ, answer(404, { success: false, ...error("not_found") })],
  ["a type outside of the closed set", READ, answer(404, error("missing"))],
  ["a type of another status", READ, answer(404, error("conflict"))],
  [
    "an unknown detail code",
    "triggerBlueprint",
    answer(422, error("validation_error", { details: [{ message: "m", code: "x", field: null }] })),
  ],
  [
    "a detail without its field",
    "triggerBlueprint",
    answer(422, error("validation_error", { details: [{ message: "m", code: null }] })),
  ],
  [
    "a run error that says more",
    "readRunStatus",
    answer(200, { ...run, error: { ...run.error, stack: "at" } }),
  ],
  ["a 401 without WWW-Authenticate", READ, answer(401, error("authentication_error"))],
  ["a 429 without Retry-After", READ, answer(429, error("rate_limit_exceeded"))],
  ["a replay where nothing is replayed", READ, answer(200, session, { "Idempotent-Replay": "true" })],
  ["no request id", READ, answer(200, session, { "X-Request-Id": "" })],
  ["an answer that may be cached", READ, answer(200, session, { "Cache-Control": "public" })],
  ["another content type", READ, answer(200, session, { "Content-Type": "text/html" })],
  ["a body where there is none", "deleteCredential", answer(204, {})],
];

for (const [what, operation, received] of WRONG) {
  test(`the checker refuses ${what}`, () => {
    assert.throws(() => expectContract(operation, received), assert.AssertionError);
  });
}
