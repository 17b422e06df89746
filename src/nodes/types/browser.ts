import type { Static } from "typebox";
import { listSteps, stepFindings } from "#answers/browser/check-steps.ts";
import { runSteps, type StepsMeans } from "#answers/browser/run-steps.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { stepsSchema } from "#answers/browser/step-schema.ts";
import { UNBUILT_KEYS } from "#domain/config-schema.ts";
import { formatPath } from "#domain/config-problem.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { readConfig } from "#domain/read-config.ts";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { retryDelayMs } from "#lib/retry-delay.ts";
import { Type } from "#lib/type.ts";
import { defineNode, NodeFailure, type ConfigFinding, type NodeContext } from "#nodes/define-node.ts";
import { inBatches } from "#nodes/records/record-flow.ts";

const schema = Type.Object(
  {
    steps: stepsSchema("node", "The steps, in order."),
    effect: Type.Optional(
      Type.Enum(["read", "write"], { description: "Default: read. `write` is not built yet." }),
    ),
  },
  {
    additionalProperties: false,
    [UNBUILT_KEYS]: ["for_each", "throttle", "verify", "on_unknown", "commit", "evidence"],
  },
);
type BrowserConfig = Static<typeof schema>;

/** docs/nodes/browser.md. */
export const node = defineNode({
  type: "browser",
  description: "Reads a target's pages in a browser, by steps, for targets without a usable HTTP interface.",
  schema,
  takes: "none",
  usesCredential: true,
  gives: "records",
  effect: "read",
  // The page's texts have not passed the door that answers of `http` nodes pass.
  unpacks: () => true,
  check: (config) => [
    ...stepFindings(config["steps"], "node", ["steps"]),
    ...effectFindings(config),
    ...extractFindings(config["steps"]),
  ],
  run: async (context, raw) => {
    const records = await readWithRetries(context, readConfig(schema, raw));
    context.log("read", { records: records.length });
    return { kind: "records", batches: batchesOf(records) };
  },
});

function effectFindings({ effect }: JsonObject): readonly ConfigFinding[] {
  if (effect !== "write") return [];
  const message = "a `browser` node that writes is not built yet; remove it, or write with an `http` node";
  return [{ path: ["effect"], message }];
}

/** A node has records of rows or one record of fields: both at once would mix records of two shapes. */
function extractFindings(steps: Json | undefined): readonly ConfigFinding[] {
  const found = listSteps(steps, ["steps"]).flatMap(({ step: { extract }, path }) =>
    extract === undefined ? [] : [{ extract, path: [...path, "extract"] }],
  );
  if (found.length === 0) return [{ path: ["steps"], message: "the steps read nothing; add an `extract`" }];
  const isField = ({ extract, path }: (typeof found)[number]): boolean =>
    JSON.stringify(extract).includes('"fields":') && !path.includes("each");
  const single = found.find(isField);
  return single === undefined || found.every(isField)
    ? []
    : [
        {
          path: single.path,
          message: "a node reads either rows or single `fields`; put one of them into a node of its own",
        },
      ];
}

async function* batchesOf(records: readonly JsonObject[]): RecordBatches {
  for (const batch of inBatches(records)) yield batch.map(validRecord);
}

/** A read that failed starts again with its first step, in a new browser: nothing of the first attempt is kept. */
async function readWithRetries(context: NodeContext, config: BrowserConfig): Promise<readonly JsonObject[]> {
  const { retry } = context.node;
  for (let attempt = 1; ; attempt++) {
    try {
      return await context.browse(async (browser) => await readOnce(context, browser, config));
    } catch (error) {
      if (!(error instanceof StepFailure)) throw error;
      context.log("failed", { code: error.code, step: formatPath(error.path), attempt });
      const mayRetry = attempt < retry.attempts && error.isPassing && (await context.takeRetry());
      if (!mayRetry) {
        const tries = attempt > 1 ? ` (attempt ${attempt})` : "";
        throw new NodeFailure(
          `${error.message}${tries}`,
          error.kind === undefined ? {} : { kind: error.kind },
        );
      }
      await context.sleep(retryDelayMs(retry, attempt, null, context.random()));
    }
  }
}

async function readOnce(
  context: NodeContext,
  browser: Parameters<Parameters<NodeContext["browse"]>[0]>[0],
  { steps }: BrowserConfig,
): Promise<readonly JsonObject[]> {
  const rows: JsonObject[] = [];
  let single: JsonObject | null = null;
  let characters = 0;
  const count = (read: readonly JsonObject[]): void => {
    for (const record of read)
      for (const value of Object.values(record)) characters += typeof value === "string" ? value.length : 0;
    if (characters > limits.browserNodeCharactersMax)
      throw new NodeFailure(`the pages have more than ${limits.browserNodeCharactersMax} characters.`);
  };
  let begun = 0;
  const beganMs = performance.now();
  const means: StepsMeans = {
    place: "node",
    browser,
    signal: context.signal,
    render: async (template) => await context.expressions.render(template),
    sink: {
      rows: (read) => {
        count(read);
        for (const record of read) rows.push(record);
      },
      fields: (fields) => {
        count([fields]);
        single = { ...single, ...fields };
      },
    },
    begin: () => void begun++,
  };
  try {
    await runSteps(means, steps);
  } finally {
    context.log("browser", { steps: begun, tookMs: Math.round(performance.now() - beganMs) });
    for (const { origin, count: times } of browser.refused())
      context.log("refused", { origin, count: times });
  }
  return single === null ? rows : [single];
}
