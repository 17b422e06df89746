import {
  decideGroupOf,
  decideWriteOf,
  listWriteGroups,
  listUncertainWrites,
} from "#actions/operators/decide-writes.ts";
import * as overview from "#actions/operators/get-overview.ts";
import * as system from "#actions/operators/get-system.ts";
import type * as contract from "#contract/operator/system.ts";
import type { Handler } from "./context.ts";

const HOURS = 24;

export const getSystem: Handler<typeof contract.readSystem> = async ({ services }) =>
  await system.getSystem(services);

export const getOverview: Handler<typeof contract.readOverview> = async ({ services }, { query }) =>
  await overview.getOverview(services.db, query.hours ?? HOURS);

export const getWrites: Handler<typeof contract.listWrites> = async ({ services, caller }, { query }) => ({
  items: await listUncertainWrites(services.db, caller, query),
});

export const postDecision: Handler<typeof contract.decideWrite> = async (
  { services, caller },
  { params, body },
) =>
  await decideWriteOf(
    services,
    caller,
    { runId: params["runId"] ?? "", node: params["node"] ?? "", record: params["record"] ?? "" },
    body.happened,
  );

export const getWriteGroups: Handler<typeof contract.listWriteGroups> = async (
  { services, caller },
  { query },
) => ({
  items: await listWriteGroups(services.db, caller, query.account),
});

export const postGroupDecision: Handler<typeof contract.decideWriteGroup> = async (
  { services, caller },
  { body },
) => await decideGroupOf(services, caller, body);
