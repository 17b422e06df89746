import type { FastifyRequest } from "fastify";
import { cancelRun, followCancel } from "#actions/runs/cancel-run.ts";
import { readRunResults } from "#actions/runs/read-run-results.ts";
import { findVisibleRun } from "#actions/runs/read-run.ts";
import { waitForChange } from "#actions/runs/wait-for-change.ts";
import { replayOrRun } from "#actions/replay-or-run.ts";
import { fingerprint } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import { invalidField } from "#domain/problem.ts";
import { projectRun } from "#domain/run.ts";
import type { DeliveryMethod } from "#domain/run-results.ts";
import { enter } from "./enter.ts";
import { sendAnswer, sendJson } from "./answer.ts";
import { readIdempotencyKey } from "./read-idempotency-key.ts";
import { readPreference } from "./read-preference.ts";
import { pathParameter, untilGone, type Handler } from "./request.ts";

/** Spec, GET /blueprint-runs/{runId}/status. */
export const getRunStatus: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "polls", scope: "runs" });
  const run = await findVisibleRun(services, caller, pathParameter(request, "runId"));
  const seconds = readWaitSeconds(request);
  if (seconds === undefined) return sendJson(reply, JSON.stringify(projectRun(run)));
  reply.header("Preference-Applied", `wait=${seconds}`);
  const wait = { waitMs: seconds * 1_000, gone: untilGone(reply) };
  return sendJson(reply, JSON.stringify(projectRun(await waitForChange(services, caller, run, wait))));
};

/** Spec, GET /blueprint-runs/{runId}/results. */
export const getRunResults: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const run = await findVisibleRun(services, caller, pathParameter(request, "runId"));
  return sendJson(reply, await readRunResults(services, caller, run, readDeliveryMethod(request)));
};

/** docs/api.md#cancelling. It has no body; one that is sent is ignored. */
export const postRunCancel: Handler = async (services, request, reply) => {
  const caller = await enter(services, request, reply, { kind: "calls", scope: "runs" });
  const runId = pathParameter(request, "runId");
  const run = await findVisibleRun(services, caller, runId);
  const key = readIdempotencyKey(request);
  const outcome = await replayOrRun(
    services,
    {
      accountId: caller.account.id,
      key,
      fingerprint: () => fingerprint("POST", ["blueprint-runs", runId, "cancel"], { kind: "none" }),
    },
    async (tx) => await cancelRun(services, tx, caller, run),
  );
  if (!outcome.replayed) followCancel(services, run);
  return sendAnswer(reply, outcome);
};

/** docs/api.md#waiting-for-a-change: of `Prefer: wait=N`, at most 60; undefined if the request does not prefer to wait. */
function readWaitSeconds(request: FastifyRequest): number | undefined {
  const preferred = readPreference(request, "wait");
  if (preferred === undefined || !/^\d{1,9}$/.test(preferred)) return undefined;
  return Math.min(Number(preferred), limits.statusWaitSecondsMax);
}

/** Spec: `direct` or `presigned_url`; when omitted, the large-dataset mode applies. Throws Problem 422. */
function readDeliveryMethod(request: FastifyRequest): DeliveryMethod | undefined {
  const value = (request.query as Record<string, unknown>)["deliveryMethod"];
  if (value === undefined || value === "direct" || value === "presigned_url") return value;
  throw invalidField("deliveryMethod", "`deliveryMethod` must be direct or presigned_url, given once.");
}
