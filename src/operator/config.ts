import { configSchema } from "#actions/config/config-schema.ts";
import * as change from "#actions/operators/change-config.ts";
import * as look from "#actions/operators/get-documents.ts";
import { startRun } from "#actions/operators/start-run.ts";
import type * as ofBlueprints from "#contract/operator/blueprints.ts";
import type * as ofConfig from "#contract/operator/config.ts";
import type * as ofStrategies from "#contract/operator/strategies.ts";
import type { Handler } from "./context.ts";

type Params = Readonly<Record<string, string>>;

const placeOf = (params: Params) => ({
  account: params["account"] ?? "",
  name: params["blueprintKey"] ?? params["strategyId"] ?? "",
});
const blueprintOf = (params: Params) => ({ kind: "blueprint", ...placeOf(params) }) as const;
const strategyOf = (params: Params) => ({ kind: "strategy", ...placeOf(params) }) as const;
const versionOf = (params: Params): string => params["version"] ?? "";

export const postCheck: Handler<typeof ofConfig.checkConfig> = async ({ services, caller }, { body }) =>
  await change.checkTyped(services, caller, body.documents, body.language ?? "en");

export const postPlan: Handler<typeof ofConfig.planConfig> = async ({ services, caller }, { body }) =>
  await change.planTyped(services, caller, body.documents);

export const postApply: Handler<typeof ofConfig.applyConfig> = async ({ services, caller }, { body }) =>
  await change.applyTyped(services, caller, body.documents);

export const getSchema: Handler<typeof ofConfig.readConfigSchema> = async () => configSchema();

export const getBlueprints: Handler<typeof ofBlueprints.listBlueprints> = async ({ services }, { query }) =>
  await look.listBlueprints(services.db, query);

export const getBlueprint: Handler<typeof ofBlueprints.readBlueprint> = async ({ services }, { params }) =>
  await look.getBlueprint(services.db, placeOf(params));

export const getBlueprintVersions: Handler<typeof ofBlueprints.listBlueprintVersions> = async (
  { services },
  { params, query },
) => await look.listVersions(services.db, blueprintOf(params), query);

export const getBlueprintVersion: Handler<typeof ofBlueprints.readBlueprintVersion> = async (
  { services },
  { params, query },
) =>
  await look.getVersion(services.db, blueprintOf(params), {
    version: versionOf(params),
    against: query.against,
  });

export const postPublishBlueprint: Handler<typeof ofBlueprints.publishBlueprintVersion> = async (
  { services, caller },
  { params },
) => await change.publishVersion(services, caller, blueprintOf(params), versionOf(params));

export const postRetireBlueprint: Handler<typeof ofBlueprints.retireBlueprint> = async (
  { services, caller },
  { params },
) => await change.setRetired(services, caller, blueprintOf(params), true);

export const postRestoreBlueprint: Handler<typeof ofBlueprints.restoreBlueprint> = async (
  { services, caller },
  { params },
) => await change.setRetired(services, caller, blueprintOf(params), false);

export const postRun: Handler<typeof ofBlueprints.startRun> = async (
  { services, caller },
  { params, body },
) => {
  const { account, name } = placeOf(params);
  return await startRun(services, caller, { account, blueprint: name }, body);
};

export const getStrategies: Handler<typeof ofStrategies.listStrategies> = async ({ services }, { query }) =>
  await look.listStrategies(services.db, query);

export const getStrategy: Handler<typeof ofStrategies.readStrategy> = async ({ services }, { params }) =>
  await look.getStrategy(services.db, placeOf(params));

export const getStrategyVersions: Handler<typeof ofStrategies.listStrategyVersions> = async (
  { services },
  { params, query },
) => await look.listVersions(services.db, strategyOf(params), query);

export const getStrategyVersion: Handler<typeof ofStrategies.readStrategyVersion> = async (
  { services },
  { params, query },
) =>
  await look.getVersion(services.db, strategyOf(params), {
    version: versionOf(params),
    against: query.against,
  });

export const postPublishStrategy: Handler<typeof ofStrategies.publishStrategyVersion> = async (
  { services, caller },
  { params },
) => await change.publishVersion(services, caller, strategyOf(params), versionOf(params));

export const postRetireStrategy: Handler<typeof ofStrategies.retireStrategy> = async (
  { services, caller },
  { params },
) => await change.setRetired(services, caller, strategyOf(params), true);

export const postRestoreStrategy: Handler<typeof ofStrategies.restoreStrategy> = async (
  { services, caller },
  { params },
) => await change.setRetired(services, caller, strategyOf(params), false);
