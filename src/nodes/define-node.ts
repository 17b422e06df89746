import { must } from "#lib/assert.ts";
import type { TObject, TProperties } from "typebox";
import { Type } from "#lib/type.ts";
import type { BoundExpressions, ExpressionScopeKind, Scope } from "#domain/expression.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { RunErrorKind } from "#domain/run.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import type { Value } from "#domain/value.ts";
import type { AtOnceContext, WholeFlow } from "./at-once.ts";

/** The refKey of an `input` or `output` node of a checked Blueprint. */
export function refKeyOf(node: Pick<BlueprintNode, "config">): string {
  const { refKey } = node.config;
  return must(typeof refKey === "string" ? refKey : undefined, "refKey");
}

/** The output of a node, which flows along an edge. */
export type Flow =
  | { readonly kind: "value"; readonly value: Value }
  | {
      readonly kind: "records";
      readonly batches: RecordBatches;
      /** The same, if they are few and already there: their reader needs no stream. */
      readonly whole?: readonly DataRecord[];
    };

export type FlowKind = Flow["kind"];

/** All capabilities of a node. Nodes never see a secret: `send` adds the credential invisibly. */
export interface NodeContext {
  readonly node: BlueprintNode;
  /** Aborted when the run is cancelled, times out or loses its lease. */
  readonly signal: AbortSignal;
  /** The outputs of the node's `from`, in its order. A skipped source is an empty record set, or an absent value. */
  readonly from: readonly Flow[];
  /** With `$inputs`, `$metadata`, `$run` and `$nodes` bound. */
  readonly expressions: BoundExpressions;
  /** The value of an INPUT by its refKey, as the trigger stored it. */
  input(refKey: string): Value;
  /** Through the egress gate, with the node's credential applied, restricted to its hosts. Throws OutboundError. */
  send(request: OutboundRequest): Promise<OutboundResponse>;
  /**
   * Opens a browser with the node's credential, restricted to its hosts, and closes it afterwards; when the run is stopped, at once, or
   * after a write that has begun (`NodeWrites.commit`) had time to end. Throws StepFailure if there is none, or it ends by itself.
   */
  browse<T>(
    work: (browser: StepBrowser) => Promise<T>,
    /** The most that the pages may download, in bytes. Default: nothing. */
    may?: { readonly downloadBytesMax?: number | undefined },
  ): Promise<T>;
  /** Stores bytes on disk during the run; returns a reader that can be opened repeatedly. Secrets are redacted in the node's output. */
  keepFile(bytes: AsyncIterable<Uint8Array>): Promise<() => AsyncIterable<Uint8Array>>;
  /** Keeps what a page showed with the run, for operators. */
  keepEvidence(evidence: NewEvidence): Promise<void>;
  /** Only for a loop. */
  readonly turns: LoopTurns | null;
  /** The writes of a node whose effect is `write`. */
  readonly writes: NodeWrites;
  /**
   * The records with the reviewer's changes. Calls `ask` if the review was not requested yet; until it is decided this throws, and the run
   * waits without holding anything.
   */
  review(records: RecordBatches, ask: () => Promise<ReviewQuestion>): Promise<RecordBatches>;
  /**
   * Waits for this node's next throttle slot across all runs and workers, one every `spacingMs`; null: it has no throttle. Then for one of
   * the account's throttle for the host of the URL.
   */
  takeSlot(spacingMs: number | null, url: string): Promise<void>;
  /**
   * Waits for the next poll. False: the poll's maximum duration is over. A long wait hands the run back by throwing: it holds nothing in the
   * meantime, and this node is executed again later.
   */
  askAgain(times: {
    readonly everyMs: number;
    readonly forMs: number;
    /** For a step in a loop. */
    readonly ordinal?: number;
  }): Promise<boolean>;
  /** Takes one of the run's retries, which all its nodes share. False: none is left, so the failure is final. */
  takeRetry(): Promise<boolean>;
  /** Waits, and ends early with a throw when `signal` aborts. */
  sleep(ms: number): Promise<void>;
  /** A number in [0, 1) for jitter. */
  random(): number;
  /**
   * Writes one result key; `null` is the bare refKey. Only for nodes that output `results`. Several may be open at the same time, and each
   * must be able to proceed while others wait: handles that share a source are written in one pass over it.
   */
  writeResult(handle: string | null, batches: RecordBatches): Promise<void>;
  /**
   * Stores records on disk during the run, for a node that can't hold them in memory; returns a reader that can be opened repeatedly.
   * Secrets of the run are redacted, as in everything that is stored.
   */
  readonly spill: (batches: RecordBatches) => Promise<() => RecordBatches>;
  /** To the operator's step log: no values of the data, only counts and names. */
  log(message: string, fields?: Record<string, number | string | boolean>): void;
  /** The same, for probable mistakes of the author: a local run shows them, too. */
  warn(message: string): void;
}

/** A loop step's output for one record; each reader opens the records again. */
export type StepOutput =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "records"; readonly open: () => RecordBatches };

/** Earlier outputs of an iteration, by step. */
export type KnownSteps = ReadonlyMap<string, () => Promise<StepOutput>>;

/** The iterations of a loop, one per record, by ordinal. A step's output is stored before the next step is executed. */
export interface LoopTurns {
  /** Whether an expression reads this step's output. */
  isRead(step: string): boolean;
  /** Stored outputs of these iterations, by ordinal; not read yet. */
  known(first: number, count: number): Promise<ReadonlyMap<number, KnownSteps>>;
  /** Executes a step for one record. `scope`: the root of its templates and its variables; `given`: files that its requests may send. */
  execute(
    step: BlueprintNode,
    turn: {
      readonly ordinal: number;
      readonly scope: Scope;
      readonly given: ReadonlyMap<string, StepOutput>;
    },
  ): Promise<StepOutput>;
}

/** The known state of a write. */
export type KnownWrite =
  | { readonly status: "done"; readonly outcome: Json }
  /** Its request was or may have been sent, and the outcome is unknown. */
  | { readonly status: "in_doubt" }
  /** It did not happen, according to a lookup or the operator. */
  | { readonly status: "ruled_out" }
  /** The target refused it. */
  | { readonly status: "refused" };

/**
 * The writes of one node, by the ordinal of their record (0 without `for_each`). The intent is committed before the request is
 * sent and the outcome after it, so that no write is ever sent blindly a second time. docs/blueprints.md#writes.
 */
export interface NodeWrites {
  /** The idempotency key, the same whenever this run sends this write. */
  token(ordinal: number): string;
  /** Missing entries were never begun. */
  known(first: number, count: number): Promise<ReadonlyMap<number, KnownWrite>>;
  /** Commits the intent. Throws when this worker has lost the run, or the write must not be sent. */
  begin(ordinal: number): Promise<void>;
  /**
   * Commits the intent of a write that no request of `send` makes, such as a click in a browser. If the run is stopped, or may have been
   * taken over, this throws and the write is ruled out.
   */
  commit(ordinal: number): Promise<void>;
  /** Throws when another worker may have the run by now: between the parts of such a write. */
  goOn(): void;
  /**
   * Sends the request. If the run is stopped afterwards, the request may still finish for a while, so that its outcome is known. If the run
   * is stopped, or may have been taken over, before the first byte is sent, this throws and the write is ruled out.
   */
  send(request: OutboundRequest, ordinal: number): Promise<OutboundResponse>;
  finish(ordinal: number, outcome: Json): Promise<void>;
  /** It did not happen: the target refused it, or a lookup did not find it. */
  refuse(ordinal: number): Promise<void>;
  ruleOut(ordinal: number): Promise<void>;
  /** It may have happened. `detail`: the reason for the operator, who also sees the request, if known. */
  doubt(ordinal: number, detail: string, request: OutboundRequest | null): Promise<void>;
  /** Parks the run until the operator has decided the uncertain writes. Always throws. */
  askOperator(): never;
}

/** A mistake in a node's configuration that its schema can't express. `path` is inside the node, e.g. `["request", "method"]`. */
export interface ConfigFinding {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The common keys that a node type's `check` can use, if the caller has them. */
export type CheckedCommon = Pick<BlueprintNode, "from" | "credential" | "timeoutMs">;

export interface NodeType {
  readonly type: string;
  readonly description: string;
  /**
   * The keys of its own, besides the common ones (`additionalProperties: false`). Expressions and templates are marked by
   * the annotations of `#domain/expression.ts`, so that `apply` finds and checks every one.
   */
  readonly schema: TObject;
  /** The kind of output that `from` must have; `none`: the node takes no `from`. */
  readonly takes: "none" | "value" | "records";
  /** Whether the node may (`optional`), must or can't name a credential slot or send requests. */
  readonly usesCredential: boolean;
  gives(config: JsonObject): FlowKind | "results";
  /** `none`: pure, streamed and recomputed after a crash. Others are checkpointed in the journal. */
  effect(config: JsonObject): "none" | "read" | "write";
  /** The scope of the templates of its requests; default `run`. Called with any config. */
  requestScope?(config: JsonObject): ExpressionScopeKind;
  /** Additional variables of the expressions of a scope. Called with any config. */
  addsVariables?(config: JsonObject): AddedVariables;
  /**
   * The node waits for a person. If its `when` is false its records pass unchanged; its `timeout` limits the wait for the person, not the
   * execution.
   */
  readonly isGate?: true;
  /** Its `timeout` applies to each of its requests, so that a hanging one can be retried. */
  readonly timesRequests?: true;
  /** It processes the records of its `for_each` one by one and journals each iteration: their ordinals are fixed before the first. */
  readonly hasTurns?: true;
  /** Its records have text that is packed in the response, so they are redacted again after unpacking. */
  unpacks?(config: JsonObject): boolean;
  /** Mistakes that the schema can't express. Called only with a config that satisfies the schema. */
  check?(config: JsonObject, common?: CheckedCommon): readonly ConfigFinding[];
  /** Warnings about a valid config: they are shown, but the document is applied anyway. */
  warn?(config: JsonObject): readonly ConfigFinding[];
  run(context: NodeContext, config: JsonObject): Promise<Flow | null>;
  /**
   * The same as `run` for small sources, without waiting, so that it costs no promises and streams. null: this can't be done without
   * waiting or is too large, and `run` follows. Only for pure nodes.
   */
  runAtOnce?(context: AtOnceContext, config: JsonObject): WholeFlow | null;
}

/** Names of variables by the scope that the schema marks. */
export type AddedVariables = { readonly [scope in ExpressionScopeKind]?: readonly string[] };

/** A JSON Schema of an object, for authors who write theirs without TypeBox. */
interface ObjectSchema {
  readonly type: "object";
  readonly properties?: { readonly [key: string]: object };
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
}

/** The definition in a type's file; defaults are those of a node that maps records to records. */
export interface NodeDefinition
  extends
    Pick<NodeType, "type" | "run">,
    Partial<Omit<NodeType, "type" | "run" | "schema" | "gives" | "effect">> {
  readonly schema: TObject | ObjectSchema;
  readonly gives?: ReturnType<NodeType["gives"]> | NodeType["gives"];
  readonly effect?: ReturnType<NodeType["effect"]> | NodeType["effect"];
}

/**
 * A Blueprint node type: one file, whose name is the type. Those of `nodes/types/` are built in; an operator's own are named in the
 * settings, and are written with the same call (docs/decisions/0031).
 */
export function defineNode(definition: NodeDefinition): NodeType {
  const { gives = "records", effect = "none", schema, ...given } = definition;
  return {
    description: "A node type of this installation.",
    takes: "records",
    usesCredential: false,
    ...given,
    schema: Type.IsObject(schema) ? schema : typedSchema(schema),
    gives: typeof gives === "function" ? gives : () => gives,
    effect: typeof effect === "function" ? effect : () => effect,
  };
}

/** JSON Schema has `required`; TypeBox marks each property instead. */
function typedSchema({ properties = {}, required = [], ...options }: ObjectSchema): TObject {
  const typed: TProperties = Object.fromEntries(
    Object.entries(properties).map(([key, property]) => [
      key,
      required.includes(key) ? property : Type.Optional(property),
    ]),
  );
  return Type.Object(typed, { ...options, additionalProperties: false });
}

/** A node named by a key of another one. */
export interface NamedSource {
  /** The path of that key inside the node. */
  readonly path: readonly (string | number)[];
  readonly source: string;
  /** The kind of output that the source must have, if it differs from that of `from`. */
  readonly takes?: FlowKind;
}

/** The sources that a node's own keys name, besides `from`. Called with any config. */
export function namedSources({
  type,
  config,
}: Pick<BlueprintNode, "type" | "config">): readonly NamedSource[] {
  const named = (
    value: Json | undefined,
    path: NamedSource["path"],
    takes?: FlowKind,
  ): readonly NamedSource[] =>
    typeof value === "string" ? [{ path, source: value, ...(takes && { takes }) }] : [];
  switch (type) {
    case "output":
      return Object.entries(isJsonObject(config["handles"]) ? config["handles"] : {}).flatMap(
        ([key, handle]) => (isJsonObject(handle) ? named(handle["from"], ["handles", key, "from"]) : []),
      );
    case "http":
      return [
        ...named(config["for_each"], ["for_each"], "records"),
        ...namedFiles(config["request"]).flatMap(({ path, file }) =>
          named(file, ["request", ...path], file === config["for_each"] ? "records" : "value"),
        ),
      ];
    case "loop":
      return [...named(config["for_each"], ["for_each"], "records"), ...filesOfSteps(config["steps"])];
    case "browser":
      return filesOfPages(config["steps"], ["steps"]);
    case "join":
      return named(config["with"], ["with"]);
    default:
      return [];
  }
}

/** Files that steps of a browser upload, at any depth. */
function filesOfPages(part: Json | undefined, path: NamedSource["path"]): readonly NamedSource[] {
  if (Array.isArray(part)) return part.flatMap((each: Json, index) => filesOfPages(each, [...path, index]));
  if (!isJsonObject(part)) return [];
  const { upload } = part;
  const own =
    isJsonObject(upload) && typeof upload["file"] === "string"
      ? [{ path: [...path, "upload", "file"], source: upload["file"], takes: "value" as const }]
      : [];
  return [...own, ...Object.entries(part).flatMap(([key, each]) => filesOfPages(each, [...path, key]))];
}

/** Files that the steps of a loop send and that come from nodes, not from steps. */
function filesOfSteps(steps: Json | undefined): readonly NamedSource[] {
  const all = (Array.isArray(steps) ? steps : []).flatMap((step: Json, index: number) =>
    isJsonObject(step) ? [{ step, index }] : [],
  );
  const ids = new Set(all.map(({ step }) => step["id"]));
  return all.flatMap(({ step, index }) =>
    namedSources({ type: "http", config: { request: step["request"] ?? null } })
      .filter(({ source }) => !ids.has(source))
      .map(({ path, ...named }) => ({ ...named, path: ["steps", index, ...path] })),
  );
}

/** Where a request names nodes that output files: `file`, and `multipart.<name>.file`, also in list items. */
function namedFiles(
  request: Json | undefined,
): readonly { readonly path: NamedSource["path"]; readonly file: Json | undefined }[] {
  if (!isJsonObject(request)) return [];
  const { file, multipart } = request;
  const parts = Object.entries(isJsonObject(multipart) ? multipart : {}).flatMap(([name, part]) =>
    Array.isArray(part)
      ? part.map((item: Json, index: number) => ({ path: ["multipart", name, index], part: item }))
      : [{ path: ["multipart", name], part }],
  );
  return [
    { path: ["file"], file },
    ...parts.flatMap(({ path, part }) =>
      isJsonObject(part) ? [{ path: [...path, "file"], file: part["file"] }] : [],
    ),
  ];
}

/**
 * The sources of a node, each once: its `from`, then the sources that its own keys name. They are edges of the graph, and
 * `NodeContext.from` is in this order (docs/blueprints.md#nodes).
 */
export function edgesOf(node: Pick<BlueprintNode, "type" | "from" | "config">): readonly string[] {
  return [...new Set([...node.from, ...namedSources(node).map(({ source }) => source)])];
}

/** The kind of output of a source for a node that names it. */
export function flowFrom(context: Pick<NodeContext, "node" | "from">, source: string): Flow {
  return must(context.from[edgesOf(context.node).indexOf(source)], `what the node ${source} gives`);
}

/** The node failed; the run fails with it. The message is for the operator: names and counts, no values of the data. */
export class NodeFailure extends Error {
  override readonly name = "NodeFailure";
  /** The answer that caused it; default: the node's last one. Operators see its beginning. */
  readonly answer: OutboundResponse | null;
  /** Why the run fails, if the node's type knows it better than that it is the target or the data. */
  readonly kind: RunErrorKind | null;

  constructor(
    message: string,
    options: { cause?: unknown; answer?: OutboundResponse; kind?: RunErrorKind } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.answer = options.answer ?? null;
    this.kind = options.kind ?? null;
  }
}

export type { Json };
