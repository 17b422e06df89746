import { isJsonObject, type Json } from "#domain/json.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { commonNodeKeys, configLimits } from "#domain/config-schema.ts";
import { parseDuration } from "#domain/duration.ts";
import { BUILT_IN_STEPS } from "#domain/run.ts";
import { nodeTypes, OWN_TYPE_REMEDY } from "#nodes/registry.ts";
import { Type } from "#lib/type.ts";
import { checkShape } from "./check-shape.ts";
import { checkDuration, checkUnique } from "./check-values.ts";
import { commonOf, type DraftNode } from "./read-nodes.ts";
import { checkTyped } from "./typed-config.ts";

/** For a node of an unknown type, only the common keys can be checked. */
const untypedNode = Type.Object(commonNodeKeys);

/** Checks every node by itself: its type, its keys, its ids, but not its connections. */
export function checkNodes(nodes: Json | undefined, drafts: readonly DraftNode[]): readonly ConfigFinding[] {
  const notObjects = (Array.isArray(nodes) ? nodes : []).flatMap((node: Json, index: number) =>
    isJsonObject(node)
      ? []
      : [{ path: ["nodes", index], message: "a node must have keys: `id`, `type` and those of its type" }],
  );
  const ids = drafts.flatMap(({ id, path }) => (id === null ? [] : [{ name: id, path: [...path, "id"] }]));
  return [
    ...notObjects,
    ...checkUnique(ids, (id) => `another node has the id ${quote(id)} already; choose another one`),
    ...drafts.flatMap(checkNode),
    ...checkResults(drafts),
  ];
}

function checkNode(draft: DraftNode): readonly ConfigFinding[] {
  const { nodeType, value, path, type } = draft;
  const typed =
    nodeType === null
      ? [
          ...checkShape(untypedNode, value, path),
          ...(type === null ? [] : [{ path: [...path, "type"], message: explainType(type) }]),
        ]
      : checkTyped(nodeType, value, {
          common: commonNodeKeys,
          path,
          check: (config) => nodeType.check?.(config, commonOf(draft)) ?? [],
        });
  return [...typed, ...checkCommon(draft)];
}

function explainType(type: string): string {
  const built = [...nodeTypes.keys()];
  const near = suggestion(type, built, "there are");
  return `unknown node type ${quote(type)}${near}${near.includes("did you mean") ? "" : `; ${OWN_TYPE_REMEDY}`}`;
}

/** The keys that every node has, and a step of a loop. */
export function checkCommon({ value, path, nodeType }: DraftNode): readonly ConfigFinding[] {
  const milestone = value["milestone"];
  const retry = isJsonObject(value["retry"]) ? value["retry"] : {};
  const delays = { maxMs: configLimits.retryDelayMsMax, zero: true };
  const initial = parseDuration(retry["initial"] ?? "500ms");
  const longest = parseDuration(retry["max"] ?? "5s");
  const isReversed = initial !== undefined && longest !== undefined && initial > longest;
  return [
    ...(typeof milestone === "string" && BUILT_IN_STEPS.includes(milestone)
      ? [
          {
            path: [...path, "milestone"],
            message: `${quote(milestone)} is a built-in progress step; choose another name`,
          },
        ]
      : []),
    ...checkDuration(value["timeout"], [...path, "timeout"], {
      maxMs: nodeType?.isGate === true ? configLimits.reviewTimeoutMsMax : configLimits.nodeTimeoutMsMax,
    }),
    ...checkDuration(retry["initial"], [...path, "retry", "initial"], delays),
    ...checkDuration(retry["max"], [...path, "retry", "max"], delays),
    ...(isReversed
      ? [{ path: [...path, "retry"], message: "`initial` is longer than `max` (default 5s); raise `max`" }]
      : []),
  ];
}

/**
 * A Blueprint must have results, each with a unique key. Names can't contain dots, so `<refKey>.<handle>` can't collide with
 * another key.
 */
function checkResults(drafts: readonly DraftNode[]): readonly ConfigFinding[] {
  const outputs = drafts.filter((draft) => draft.gives === "results");
  const refKeys = outputs.flatMap(({ config, path }) =>
    typeof config["refKey"] === "string" ? [{ name: config["refKey"], path: [...path, "refKey"] }] : [],
  );
  return [
    ...(outputs.length === 0 && drafts.length > 0
      ? [
          {
            path: ["nodes"],
            at: "key" as const,
            message:
              "there is no output node; add one, as in `{ id: out, type: output, refKey: items, from: … }`",
          },
        ]
      : []),
    ...checkUnique(
      refKeys,
      (refKey) => `another output has the refKey ${quote(refKey)} already; choose another one`,
    ),
  ];
}
