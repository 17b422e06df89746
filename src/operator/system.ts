import {
  decideGroupOf,
  decideWriteOf,
  lookAtWriteGroups,
  lookAtWrites,
} from "#actions/operators/decide-writes.ts";
import { lookAtOverview } from "#actions/operators/look-at-overview.ts";
import { lookAtSystem } from "#actions/operators/look-at-system.ts";
import type * as contract from "#contract/operator/system.ts";
import type { Handler } from "./context.ts";

const HOURS = 24;

export const getSystem: Handler<typeof contract.readSystem> = async ({ services }) =>
  await lookAtSystem(services);

export const getOverview: Handler<typeof contract.readOverview> = async ({ services }, { query }) =>
  await lookAtOverview(services.db, query.hours ?? HOURS);

export const getWrites: Handler<typeof contract.listWrites> = async ({ services, caller }, { query }) => ({
  items: await lookAtWrites(services.db, caller, query),
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
  items: await lookAtWriteGroups(services.db, caller, query.account),
});

export const postGroupDecision: Handler<typeof contract.decideWriteGroup> = async (
  { services, caller },
  { body },
) => await decideGroupOf(services, caller, body);
