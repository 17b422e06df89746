import { cancelRunOf, purgeRunOf } from "#actions/operators/end-runs.ts";
import { lookAtRun, lookAtRuns } from "#actions/operators/look-at-runs.ts";
import type * as contract from "#contract/operator/runs.ts";
import type { Handler } from "./context.ts";

export const getRuns: Handler<typeof contract.listRuns> = async ({ services }, { query }) =>
  await lookAtRuns(services.db, query);

export const getRun: Handler<typeof contract.readRun> = async ({ services }, { params }) =>
  await lookAtRun(services.db, params["runId"] ?? "");

export const postCancel: Handler<typeof contract.cancelRun> = async ({ services, caller }, { params }) =>
  await cancelRunOf(services, caller, params["runId"] ?? "");

export const postPurge: Handler<typeof contract.purgeRun> = async ({ services, caller }, { params }) =>
  await purgeRunOf(services, caller, params["runId"] ?? "");
