import { putTestClock, readTestClock } from "#actions/test-mode/test-clock.ts";
import { limits } from "#domain/limits.ts";
import { invalidField } from "#domain/problem.ts";
import { sendJson } from "./answer.ts";
import { enter } from "./enter.ts";
import { readJsonObject, senderOf } from "./read-body.ts";
import type { Handler } from "./request.ts";

/** docs/test-mode.md#the-test-clock. */
export const getTestClock: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  return sendJson(reply, JSON.stringify({ now: await readTestClock(services, caller) }));
};

/** The same request again changes nothing, so it needs no `Idempotency-Key`. */
export const putTestClockTo: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const body = await readJsonObject(request, {
    bytesMax: limits.jsonBodyBytesMax,
    sender: senderOf(caller),
  });
  for (const field of body.keys())
    if (field !== "now") throw invalidField(field, `The test clock has no \`${field}\`. It has now.`);
  const now = body.get("now");
  const isTime = typeof now === "string" && TIME.test(now) && !Number.isNaN(Date.parse(now));
  if (!isTime) throw invalidField("now", "`now` must be a time in UTC, such as 2027-01-31T08:00:00.000Z.");
  return sendJson(reply, JSON.stringify({ now: await putTestClock(services, caller, Date.parse(now)) }));
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;
