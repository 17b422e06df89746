import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import { EXPRESSION } from "#domain/expression.ts";
import type { JsonObject } from "#domain/json.ts";
import { wholeRecordsOf } from "#nodes/at-once.ts";
import { defineNode, flowFrom, type ConfigFinding, type NodeContext } from "#nodes/define-node.ts";
import { valueOf } from "#nodes/records/expression-value.ts";
import { isWanted } from "./filter.ts";
import { readConfig } from "#domain/read-config.ts";
import { indexedBatches, recordScopes, recordsOf } from "#nodes/records/record-flow.ts";
import { splitRecords, type RecordSplit } from "#nodes/records/split-records.ts";

// docs/api.md#results: no dots in output refKeys and handle keys.
const KEY_PATTERN = String.raw`^[^.\u0000-\u001f]+$`;

const schema = Type.Object(
  {
    refKey: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: KEY_PATTERN,
      description: "The key in the results.",
    }),
    handles: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Object(
          {
            from: Type.String({ minLength: 1, description: "The node whose records this handle outputs." }),
            where: Type.Optional(
              Type.String({
                minLength: 1,
                [EXPRESSION]: "record",
                description: "A condition: only records for which it is true.",
              }),
            ),
          },
          { additionalProperties: false },
        ),
        {
          minProperties: 1,
          description: "Several result keys, `<refKey>.<handle>`. A single handle uses just the refKey.",
        },
      ),
    ),
  },
  { additionalProperties: false },
);

type Handle = { readonly key: string; readonly from: string; readonly where: string | null };

/** docs/nodes/output.md. */
export const node = defineNode({
  type: "output",
  description: "Writes records to the results of the run.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "results",
  effect: () => "none",
  check: (config, common): readonly ConfigFinding[] => {
    const handles = Object.keys(readConfig(schema, config).handles ?? {});
    const findings = handles
      .filter((key) => !new RegExp(KEY_PATTERN).test(key) || key.length > 255)
      .map((key) => ({
        path: ["handles", key],
        message: "a handle's key must have 1 to 255 characters and no dot",
      }));
    if (common === undefined || handles.length > 0 !== common.from.length > 0) return findings;
    return [
      ...findings,
      { path: [], message: "an output needs either `from`, or `handles` with a `from` each" },
    ];
  },
  run: async (context, raw) => {
    const config = readConfig(schema, raw);
    if (config.handles === undefined) {
      await context.writeResult(null, recordsOf(context.from));
    } else {
      await writeHandles(context, config.handles);
    }
    return null;
  },
  runAtOnce: (context, raw) => {
    const records = readConfig(schema, raw).handles === undefined ? wholeRecordsOf(context.from) : null;
    return records && context.writeResult(null, records) ? { kind: "results" } : null;
  },
});

/** The result keys of an output node, in order; `handle` is the argument for `writeResult`. Spec, Run results. */
export function resultKeysOf(
  output: Pick<BlueprintNode, "config">,
): readonly { readonly handle: string | null; readonly key: string }[] {
  const config: JsonObject = output.config;
  const { refKey, handles } = readConfig(schema, config);
  const keys = Object.keys(handles ?? {});
  return keys.length > 1
    ? keys.map((handle) => ({ handle, key: `${refKey}.${handle}` }))
    : [{ handle: null, key: refKey }];
}

async function writeHandles(
  context: NodeContext,
  config: NonNullable<Static<typeof schema>["handles"]>,
): Promise<void> {
  const handles: readonly Handle[] = Object.entries(config).map(([key, { from, where }]) => ({
    key,
    from,
    where: where ?? null,
  }));
  for (const [source, sharing] of Map.groupBy(handles, (handle) => handle.from)) {
    await splitRecords(
      split(context, recordsOf([flowFrom(context, source)]), sharing),
      sharing.map(
        (handle) => (batches) => context.writeResult(handles.length > 1 ? handle.key : null, batches),
      ),
    );
  }
}

/** Splits each batch by handle, evaluating all conditions in one call. */
async function* split(
  context: NodeContext,
  batches: ReturnType<typeof recordsOf>,
  handles: readonly Handle[],
): RecordSplit {
  const conditions = handles.flatMap((handle) => (handle.where === null ? [] : [handle.where]));
  for await (const { first, batch } of indexedBatches([{ kind: "records", batches }])) {
    const outcomes =
      conditions.length === 0
        ? []
        : await context.expressions.evaluateBatch(conditions, recordScopes(batch, first));
    yield handles.map(({ key, where }) => {
      if (where === null) return batch;
      const column = conditions.indexOf(where);
      return batch.filter((_record, index) => {
        const place = `Record ${first + index}: handles.${key}.where`;
        return isWanted(valueOf(outcomes[index]?.[column], place), place);
      });
    });
  }
}
