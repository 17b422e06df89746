import { parseDuration } from "#domain/duration.ts";
import type { ExpressionScopeKind } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { ConfigPath } from "#domain/config-problem.ts";
import { commonNodeKeys } from "#domain/config-schema.ts";
import {
  namedSources,
  type AddedVariables,
  type CheckedCommon,
  type FlowKind,
  type NamedSource,
  type NodeType,
} from "#nodes/define-node.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { ownKeys } from "./typed-config.ts";

/** The readable parts of a node whose document may be invalid. */
export interface DraftNode {
  readonly path: ConfigPath;
  readonly id: string | null;
  readonly type: string | null;
  /** Null when the type is unknown or not built. */
  readonly nodeType: NodeType | null;
  readonly value: JsonObject;
  /** The keys of its type. */
  readonly config: JsonObject;
  /** The sources of a node, and their places in the document. */
  readonly sources: readonly (Omit<NamedSource, "path"> & { readonly path: ConfigPath })[];
  /** Null when that can't be known. */
  readonly gives: FlowKind | "results" | null;
  readonly requestScope: ExpressionScopeKind;
  readonly addedVariables: AddedVariables;
}

export function readNodes(nodes: Json | undefined): readonly DraftNode[] {
  return (Array.isArray(nodes) ? nodes : []).flatMap((value: Json, index: number) =>
    isJsonObject(value) ? [readNode(value, ["nodes", index])] : [],
  );
}

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

export function readNode(value: JsonObject, path: ConfigPath): DraftNode {
  const type = text(value["type"]);
  const nodeType = (type === null ? undefined : nodeTypes.get(type)) ?? null;
  const config = ownKeys(value, commonNodeKeys);
  const sources = readSources(value, config, path);
  return {
    path,
    id: text(value["id"]),
    type,
    nodeType,
    value,
    config,
    sources,
    gives: readGives(nodeType, config),
    requestScope: nodeType?.requestScope?.(config) ?? "run",
    addedVariables: nodeType?.addsVariables?.(config) ?? {},
  };
}

/** Like `edgesOf`, but with all places: first the common `from`, then the node's other keys that name sources. */
function readSources(value: JsonObject, config: JsonObject, path: ConfigPath): DraftNode["sources"] {
  const { from } = value;
  const common: DraftNode["sources"] = Array.isArray(from)
    ? from.flatMap((source: Json, index: number) =>
        typeof source === "string" ? [{ path: [...path, "from", index], source }] : [],
      )
    : typeof from === "string"
      ? [{ path: [...path, "from"], source: from }]
      : [];
  const own = namedSources({ type: text(value["type"]) ?? "", config }).map((named) => ({
    ...named,
    path: [...path, ...named.path],
  }));
  return [...common, ...own];
}

/** `gives` expects a config that satisfies its schema; for an invalid one it may fail. */
function readGives(nodeType: NodeType | null, config: JsonObject): DraftNode["gives"] {
  try {
    return nodeType?.gives(config) ?? null;
  } catch {
    return null;
  }
}

/** The common keys that a type's `check` can use. */
export function commonOf(node: DraftNode): CheckedCommon {
  const common = node.sources.filter(({ path }) => path[node.path.length] === "from");
  return {
    from: common.map(({ source }) => source),
    credential: text(node.value["credential"]),
    timeoutMs: parseDuration(node.value["timeout"] ?? null) ?? null,
  };
}
