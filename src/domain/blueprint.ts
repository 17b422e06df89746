import { editionOf, type Edition } from "./edition.ts";
import { isJsonObject, texts, type Json, type JsonObject } from "./json.ts";
import { parseDuration } from "./duration.ts";
import { must } from "#lib/assert.ts";
import { limits } from "./limits.ts";
import { readConcurrency, type BlueprintConcurrency } from "./run-group.ts";

export interface RetryPolicy {
  readonly attempts: number;
  readonly backoff: "exponential" | "fixed";
  readonly initialMs: number;
  readonly maxMs: number;
}

/** A node of a checked Blueprint. `config` holds the keys of its own type, as written. */
export interface BlueprintNode {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly from: readonly string[];
  readonly when: string | null;
  readonly credential: string | null;
  readonly milestone: string | null;
  readonly timeoutMs: number | null;
  readonly retry: RetryPolicy;
  readonly config: JsonObject;
  /** The edition of its Blueprint. */
  readonly edition: Edition;
}

export interface CredentialSlot {
  readonly slot: string;
  readonly strategyId: string;
}

export interface MetadataItem {
  readonly name: string;
  readonly required: boolean;
  readonly label: string | null;
}

export interface Blueprint {
  readonly key: string;
  readonly account: string;
  readonly name: string;
  readonly hosts: readonly string[];
  /** In document order. docs/api.md#credentials-of-a-trigger. */
  readonly credentials: readonly CredentialSlot[];
  readonly metadata: readonly MetadataItem[];
  readonly timeoutMs: number;
  readonly retentionMs: number | null;
  /** null: only the account's and the credentials' limits count. */
  readonly concurrency: BlueprintConcurrency | null;
  /** In document order; the order of execution is `executionOrder`. */
  readonly nodes: readonly BlueprintNode[];
  readonly retired: boolean;
}

/** Keys that every node may have; the others belong to its type. */
export const COMMON_NODE_KEYS = [
  "id",
  "type",
  "name",
  "from",
  "when",
  "credential",
  "milestone",
  "timeout",
  "retry",
] as const;

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);
const list = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
const object = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});
const duration = (value: Json | undefined): number | null =>
  value === undefined || value === null ? null : must(parseDuration(value), "a checked duration");

/** Reads a Blueprint document that `apply` has checked. Shapes that the check refuses are bugs here. */
export function readBlueprint(document: JsonObject): Blueprint {
  return {
    key: must(text(document["blueprint"]), "blueprint"),
    account: must(text(document["account"]), "account"),
    name: text(document["name"]) ?? must(text(document["blueprint"]), "blueprint"),
    hosts: texts(document["hosts"]),
    credentials: Object.entries(object(document["credentials"])).map(([slot, value]) => ({
      slot,
      strategyId: must(text(object(value)["strategy"]), "strategy"),
    })),
    metadata: list(document["metadata"]).map((item) => ({
      name: must(text(object(item)["name"]), "metadata name"),
      required: object(item)["required"] === true,
      label: text(object(item)["label"]),
    })),
    timeoutMs: duration(document["timeout"]) ?? limits.runTimeoutMs,
    retentionMs: duration(document["retention"]),
    concurrency: readConcurrency(document["concurrency"]),
    nodes: list(document["nodes"]).map((node) => readNode(object(node), editionOf(document))),
    retired: document["retired"] === true,
  };
}

/** One node, or a step of a loop, as written. */
export function readNode(node: JsonObject, edition: Edition): BlueprintNode {
  const from = node["from"];
  const retry = object(node["retry"]);
  const common = new Set<string>(COMMON_NODE_KEYS);
  return {
    id: must(text(node["id"]), "node id"),
    type: must(text(node["type"]), "node type"),
    name: text(node["name"]),
    from: typeof from === "string" ? [from] : texts(from),
    when: text(node["when"]),
    credential: text(node["credential"]),
    milestone: text(node["milestone"]),
    timeoutMs: duration(node["timeout"]),
    // docs/decisions/0008: 3 attempts, 0.5 s first, 5 s longest (for reads).
    retry: {
      attempts: typeof retry["attempts"] === "number" ? retry["attempts"] : 3,
      backoff: retry["backoff"] === "fixed" ? "fixed" : "exponential",
      initialMs: duration(retry["initial"]) ?? 500,
      maxMs: duration(retry["max"]) ?? 5_000,
    },
    config: Object.fromEntries(Object.entries(node).filter(([key]) => !common.has(key))),
    edition,
  };
}
