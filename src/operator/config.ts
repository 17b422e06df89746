import { configSchema } from "#actions/config/config-schema.ts";
import { exportConfig } from "#actions/config/export-config.ts";
import * as change from "#actions/operators/change-config.ts";
import * as look from "#actions/operators/get-documents.ts";
import { getBlueprintHealth as readHealth } from "#actions/operators/get-health.ts";
import { startRun } from "#actions/operators/start-run.ts";
import type * as ofBlueprints from "#contract/operator/blueprints.ts";
import type * as ofConfig from "#contract/operator/config.ts";
import type * as ofStrategies from "#contract/operator/strategies.ts";
import type { Context, Handler, SharedHttp } from "./context.ts";

type Params = Readonly<Record<string, string>>;

const placeOf = (params: Params) => ({
  account: params["account"] ?? "",
  name: params["blueprintKey"] ?? params["strategyId"] ?? "",
});
const versionOf = (params: Params): string => params["version"] ?? "";

export const postCheck: Handler<typeof ofConfig.checkConfig> = async ({ services, caller }, { body }) =>
  await change.checkTyped(services, caller, body.documents, body.language ?? "en");

export const postPreview =
  (render: SharedHttp["renderFormPreview"]): Handler<typeof ofStrategies.previewForm> =>
  async ({ services, caller }, { body: { text, ...look } }) => ({
    page: render(services, { ...(await change.previewTyped(services, caller, text)), ...look }),
  });

export const postPlan: Handler<typeof ofConfig.planConfig> = async ({ services, caller }, { body }) =>
  await change.planTyped(services, caller, body.documents, body.base_version);

export const postApply: Handler<typeof ofConfig.applyConfig> = async ({ services, caller }, { body }) =>
  await change.applyTyped(services, caller, body.documents, {
    baseVersion: body.base_version,
    base: body.base,
  });

export const getExport: Handler<typeof ofConfig.exportConfig> = async ({ services }, { query }) => ({
  items: (await exportConfig(services.db, query.account ?? null)).map((each) => ({ ...each })),
});

export const getSchema: Handler<typeof ofConfig.readConfigSchema> = async () => configSchema();

export const getBlueprints: Handler<typeof ofBlueprints.listBlueprints> = async (
  { services, limit },
  { query },
) => await look.listBlueprints(services.db, query, limit);

export const getBlueprint: Handler<typeof ofBlueprints.readBlueprint> = async ({ services }, { params }) =>
  await look.getBlueprint(services.db, placeOf(params));

export const getBlueprintHealth: Handler<typeof ofBlueprints.readBlueprintHealth> = async (
  { services },
  { params, query },
) => await readHealth(services.db, placeOf(params), query);

export const postRun: Handler<typeof ofBlueprints.startRun> = async (
  { services, caller },
  { params, body },
) => {
  const { account, name } = placeOf(params);
  return await startRun(services, caller, { account, blueprint: name }, body);
};

export const getStrategies: Handler<typeof ofStrategies.listStrategies> = async (
  { services, limit },
  { query },
) => await look.listStrategies(services.db, query, limit);

export const getStrategy: Handler<typeof ofStrategies.readStrategy> = async ({ services }, { params }) =>
  await look.getStrategy(services.db, placeOf(params));

/** The parameters of a path. */
interface Named {
  readonly params: Params;
}

/** Operations that are the same for both kinds. */
const versionsOf = (kind: look.DocumentName["kind"]) => {
  const nameOf = (params: Params): look.DocumentName => ({ kind, ...placeOf(params) });
  const setRetired =
    (retired: boolean) =>
    async ({ services, caller }: Context, { params }: Named) =>
      await change.setRetired(services, caller, nameOf(params), retired);
  return {
    list: async (
      { services }: Context,
      { params, query }: Named & { readonly query: { cursor?: string; limit?: number } },
    ) => await look.listVersions(services.db, nameOf(params), query),
    read: async (
      { services }: Context,
      { params, query: { against } }: Named & { readonly query: { against?: number } },
    ) => await look.getVersion(services.db, nameOf(params), { version: versionOf(params), against }),
    publish: async ({ services, caller }: Context, { params }: Named) =>
      await change.publishVersion(services, caller, nameOf(params), versionOf(params)),
    retire: setRetired(true),
    restore: setRetired(false),
  };
};

export const blueprintVersions = versionsOf("blueprint");
export const strategyVersions = versionsOf("strategy");
