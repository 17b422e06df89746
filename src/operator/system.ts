import * as overview from "#actions/operators/get-overview.ts";
import * as system from "#actions/operators/get-system.ts";
import type * as contract from "#contract/operator/system.ts";
import type { Handler } from "./context.ts";

const HOURS = 24;

export const getSystem: Handler<typeof contract.readSystem> = async ({ services }) =>
  await system.getSystem(services);

export const getOverview: Handler<typeof contract.readOverview> = async ({ services, limit }, { query }) =>
  await overview.getOverview(services.db, query.hours ?? HOURS, limit);
