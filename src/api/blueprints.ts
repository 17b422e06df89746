import type { FastifyReply, FastifyRequest } from "fastify";
import { isPassingFailure } from "#actions/passing-failure.ts";
import { findStored, replayIdentical, type Stored } from "#actions/replay-or-run.ts";
import { acceptTrigger } from "#actions/runs/accept-trigger.ts";
import { describeTrigger } from "#actions/runs/describe-trigger.ts";
import type { Caller, Services } from "#actions/services.ts";
import { findTriggeredBlueprint, routingTableOf } from "#actions/runs/trigger-run.ts";
import { fingerprint, fingerprintOfBytes } from "#domain/idempotency.ts";
import { ignoredKeys } from "#domain/trigger-routing.ts";
import { inSpan, isTracing, readTraceparent } from "#lib/tracing.ts";
import { enter } from "./enter.ts";
import { sendAnswer, sendJson } from "./answer.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { readQueueHeaders } from "./read-queue-options.ts";
import { readTriggerBody } from "./read-trigger-body.ts";
import { asksForIgnoredKeys, reportIgnoredKeys } from "./report-ignored-keys.ts";
import { pathParameter, type Handler } from "./request.ts";

/** The trigger in a span: of the caller's trace, if it sent one, and the run's later. */
export const postTrigger: Handler = async (services, request, reply) => {
  const parent = readTraceparent(request.headers["traceparent"]);
  if (!isTracing()) return await trigger(services, request, reply, parent);
  const name = "POST /api/v1/blueprints/:blueprintKey/trigger";
  return await inSpan(name, { parent, kind: "server" }, async (span) => {
    const answer = await trigger(services, request, reply, parent);
    span.set("http.response.status_code", reply.statusCode);
    return answer;
  });
};

/** Spec, POST /blueprints/{blueprintKey}/trigger. The order of checks is that of docs/api.md#order-of-checks. */
async function trigger(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  traceparent: string | null,
): ReturnType<Handler> {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const initiator = { ...caller, traceparent };
  const blueprintKey = pathParameter(request, "blueprintKey");
  // Both in one round trip to the database; problems of the Blueprint take precedence.
  const keyed = findKey(services, caller, request);
  keyed.catch(() => {});
  const version = await findTriggeredBlueprint(services, caller, blueprintKey);
  const { key, stored } = await keyed;
  const queue = readQueueHeaders(request);
  const path = ["blueprints", blueprintKey, "trigger"];
  const fingerprintOf = (bytes: Buffer) => (beside: Buffer) =>
    fingerprintOfBytes("POST", path, bytes, beside);
  const body = await readTriggerBody(services, request, caller, (bytes) =>
    asksForIgnoredKeys(request) ? null : replayIdentical(services, stored, fingerprintOf(bytes)),
  );
  if ("replayed" in body) return sendAnswer(reply, body);
  // Also for a replay, whose body is the same, and for a refusal: a misspelled key may be the reason that metadata is missing.
  reportIgnoredKeys(request, reply, ignoredKeys(body.values.keys(), routingTableOf(version)));
  let kept: ReadonlySet<string> = new Set();
  try {
    const outcome = await acceptTrigger(services, initiator, version, {
      key,
      stored,
      fingerprint: () => fingerprint("POST", path, body.print()),
      fingerprintOfBytes: body.bytes && fingerprintOf(body.bytes),
      body: body.values,
      queue,
    });
    if (!outcome.replayed) {
      kept = routingTableOf(version).inputRefKeys;
      services.news.notifyRunnable([caller.account.id]);
    }
    return sendAnswer(reply, outcome);
  } catch (error) {
    // If the connection broke, the COMMIT may still have succeeded: the sweep removes files that no run refers to.
    if (isPassingFailure(error)) kept = new Set(body.values.keys());
    throw error;
  } finally {
    // Files of a request that created no run are removed, and so are those under keys that the Blueprint ignores.
    await body.discard(kept);
  }
}

/** The request's key and the record stored under it. Throws Problem 422. */
async function findKey(
  services: Services,
  caller: Caller,
  request: FastifyRequest,
): Promise<{ key: string | null; stored: Stored | undefined }> {
  const key = readIdempotencyKey(request);
  const stored = key === null ? undefined : await findStored(services, caller.account.id, key);
  return { key, stored };
}

/** The schema of a trigger's body: docs/api.md#the-schema-of-a-blueprint. */
export const getTriggerSchema: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const version = await findTriggeredBlueprint(services, caller, pathParameter(request, "blueprintKey"));
  return sendJson(reply, JSON.stringify(describeTrigger(version)));
};
