import assert from "node:assert/strict";
import { test } from "node:test";
import {
  endpointUrlProblem,
  nextAttemptInMs,
  renderEvent,
  RETRY_DELAYS_MS,
  SUBSCRIPTIONS,
  subscriptionsProblem,
} from "#domain/webhook.ts";

test("a failed delivery is tried ten times over three days, each delay within a fifth of its length", () => {
  const failed = { status: 500, retryAfterMs: null };
  let totalMs = 0;
  for (const [index, delayMs] of RETRY_DELAYS_MS.entries()) {
    assert.equal(nextAttemptInMs(index + 1, failed, 0), Math.round(delayMs * 0.8));
    assert.equal(nextAttemptInMs(index + 1, failed, 0.5), delayMs);
    assert.ok((nextAttemptInMs(index + 1, failed, 0.999) ?? 0) <= delayMs * 1.2);
    totalMs += delayMs;
  }
  assert.equal(RETRY_DELAYS_MS.length, 9);
  assert.ok(totalMs > 3 * 86_400_000 && totalMs < 4 * 86_400_000);
  assert.equal(nextAttemptInMs(10, failed, 0.5), null);
});

test("Retry-After of 429 and 503 lengthens a delay, never shortens it, and counts for a day at most", () => {
  const askedMs = (status: number | null, retryAfterMs: number): number | null =>
    nextAttemptInMs(1, { status, retryAfterMs }, 0.5);
  assert.equal(askedMs(429, 60_000), 60_000);
  assert.equal(askedMs(503, 60_000), 60_000);
  assert.equal(askedMs(503, 1_000), 5_000);
  assert.equal(askedMs(500, 60_000), 5_000);
  assert.equal(askedMs(429, 10 * 86_400_000), 86_400_000);
});

test("an endpoint has an https URL without a password; plain http is for this machine", () => {
  assert.equal(endpointUrlProblem("https://example.com/hooks?team=1"), null);
  assert.equal(endpointUrlProblem("http://127.0.0.1:3000/hooks"), null);
  for (const [url, problem] of [
    ["http://example.com/hooks", /https:\/\//],
    ["ftp://example.com", /https:\/\//],
    ["/hooks", /absolute/],
    ["https://user:secret@example.com", /password/],
    ["https://example.com/#part", /fragment/],
    [`https://example.com/${"a".repeat(2_000)}`, /2000 characters/],
  ] as const)
    assert.match(endpointUrlProblem(url) ?? "", problem, url);
  assert.doesNotMatch(endpointUrlProblem("https://user:secret@example.com") ?? "", /secret/);
});

test("an endpoint subscribes to types, subjects, or everything", () => {
  for (const events of [["*"], ["run.*", "credential.deleted"], ["credential_session.*"]])
    assert.equal(subscriptionsProblem(events), null);
  for (const events of [[], ["run"], ["ping"], ["run.finished"], ["run.failed", "run.failed"]])
    assert.notEqual(subscriptionsProblem(events), null, events.join(" "));
  assert.equal(new Set(SUBSCRIPTIONS).size, SUBSCRIPTIONS.length);
});

test("an event shows of its subject what the API shows, and nothing else", () => {
  const occurredAt = new Date("2026-11-23T10:00:00Z");
  const data = {
    id: "run_1",
    runKey: "0",
    status: "failed",
    progressStep: "failed",
    createdAt: new Date("2026-11-23T09:00:00.123Z"),
    startedAt: null,
    endedAt: new Date("2026-11-23T10:00:00.5Z"),
    blueprintId: "bp_1",
    metadata: "what the caller named",
  };
  const { data: shown, ...event } = JSON.parse(
    renderEvent({ id: "msg_1", type: "run.failed", occurredAt, data }, "https://latchkey.example"),
  );
  assert.deepEqual(event, { type: "run.failed", timestamp: "2026-11-23T10:00:00.000Z" });
  assert.deepEqual(Object.keys(shown), [
    "id",
    "run_key",
    "status",
    "progress_step",
    "created_at",
    "started_at",
    "ended_at",
    "error",
    "blueprint_id",
  ]);
  assert.equal(shown.ended_at, "2026-11-23T10:00:00.500Z");
  assert.equal(shown.error.code, "execution_failed");
});
