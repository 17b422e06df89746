import {
  decideGroupOf,
  decideWriteOf,
  listWriteGroups,
  listUncertainWrites,
} from "#actions/operators/decide-writes.ts";
import type * as contract from "#contract/operator/writes.ts";
import type { Handler } from "./context.ts";

export const getWrites: Handler<typeof contract.listWrites> = async (
  { services, caller, limit },
  { query },
) => ({
  items: await listUncertainWrites(services.db, caller, query, limit),
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
  { services, caller, limit },
  { query },
) => ({
  items: await listWriteGroups(services.db, caller, query.account, limit),
});

export const postGroupDecision: Handler<typeof contract.decideWriteGroup> = async (
  { services, caller },
  { body },
) => await decideGroupOf(services, caller, body);
