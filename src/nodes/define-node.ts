import { must } from "#lib/assert.ts";
import { Type, type TObject, type TProperties } from "typebox";
import type { BoundExpressions, ExpressionScopeKind, Scope } from "#domain/expression.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { RecordBatches } from "#domain/record.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import type { Value } from "#domain/value.ts";

/** The refKey of an `input` or `output` node of a checked Blueprint. */
export function refKeyOf(node: Pick<BlueprintNode, "config">): string {
  const { refKey } = node.config;
  return must(typeof refKey === "string" ? refKey : undefined, "refKey");
}

/** What flows along an edge. */
export type Flow =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "records"; readonly batches: RecordBatches };

export type FlowKind = Flow["kind"];

/** The capabilities of a node, and all it has. No node sees a secret: `send` adds the credential behind its back. */
export interface NodeContext {
  readonly node: BlueprintNode;
  /** Aborted when the run is cancelled, times out or loses its lease. */
  readonly signal: AbortSignal;
  /** What the node's `from` gives, in its order. A skipped source gives an empty record set, or an absent value. */
  readonly from: readonly Flow[];
  /** With `$inputs`, `$metadata`, `$run` and `$nodes` bound. */
  readonly expressions: BoundExpressions;
  /** The value of an INPUT by its refKey, as the trigger stored it. */
  input(refKey: string): Value;
  /** Through the egress gate, with the node's credential applied, restricted to its hosts. Throws OutboundError. */
  send(request: OutboundRequest): Promise<OutboundResponse>;
  /** Of a loop alone. */
  readonly turns: LoopTurns | null;
  /** The writes of a node whose effect is `write`. */
  readonly writes: NodeWrites;
  /**
   * The records as a person left them. `ask` is called when nobody was asked yet; until it is decided this throws, and the run
   * waits without holding anything.
   */
  review(records: RecordBatches, ask: () => Promise<ReviewQuestion>): Promise<RecordBatches>;
  /** Waits for this node's next free moment, among all runs and workers: one every `spacingMs`. */
  takeSlot(spacingMs: number): Promise<void>;
  /**
   * A read's answer would not do yet: waits until it may ask again. False: it has asked for as long as it may. A wait that lasts hands the run
   * back, by a throw: it holds nothing meanwhile, and this node is carried anew when its time has come.
   */
  askAgain(times: {
    readonly everyMs: number;
    readonly forMs: number;
    /** Of a step in a loop. */
    readonly ordinal?: number;
  }): Promise<boolean>;
  /** Takes one of the run's retries, which all its nodes share. False: they are used up, and what failed fails at once. */
  takeRetry(): Promise<boolean>;
  /** Waits, and ends early with a throw when `signal` aborts. */
  sleep(ms: number): Promise<void>;
  /** A number in [0, 1) for jitter. */
  random(): number;
  /**
   * Writes one result key whole; `null` is the bare refKey. Only for nodes that give `results`. Several may be open at once,
   * and each must be able to go on while the others wait: handles that share a source are written in one pass over it.
   */
  writeResult(handle: string | null, batches: RecordBatches): Promise<void>;
  /**
   * Keeps records on disk for the length of the run, for a node that can't hold them; gives a reader of them, to be opened as
   * often as needed. Secrets of the run are taken out of them, as of everything that is stored.
   */
  readonly spill: (batches: RecordBatches) => Promise<() => RecordBatches>;
  /** To the operator's step log: no values of the data, only counts and names. */
  log(message: string, fields?: Record<string, number | string | boolean>): void;
  /** The same, for what is probably not as the author meant it: an author's own run shows it, too. */
  warn(message: string): void;
}

/** What a step of a loop has given for one record; records are opened anew by each reader. */
export type StepOutput =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "records"; readonly open: () => RecordBatches };

/** What steps of a turn have given before, by step. */
export type KnownSteps = ReadonlyMap<string, () => Promise<StepOutput>>;

/** The turns of a loop, one a record, by its place. What a step has given is kept before the next one is carried. */
export interface LoopTurns {
  /** Whether an expression reads what this step gave. */
  isRead(step: string): boolean;
  /** What the steps of these turns have given already, by place; none of it is read yet. */
  known(first: number, count: number): Promise<ReadonlyMap<number, KnownSteps>>;
  /** Carries a step for one record. `scope` is the root of its templates and its variables; `given`: what its requests may send as files. */
  carry(
    step: BlueprintNode,
    turn: {
      readonly ordinal: number;
      readonly scope: Scope;
      readonly given: ReadonlyMap<string, StepOutput>;
    },
  ): Promise<StepOutput>;
}

/** What is known of a write from before. */
export type KnownWrite =
  | { readonly status: "done"; readonly outcome: Json }
  /** Its request may have been sent, or it was, and nobody knows what became of it. */
  | { readonly status: "in_doubt" }
  /** It was looked up, or the operator said: it did not happen. */
  | { readonly status: "ruled_out" }
  /** The target refused it. */
  | { readonly status: "refused" };

/**
 * The writes of one node, by the place of their record (0 without `for_each`). The intent is committed before the request is
 * sent and the outcome after it, so that no write is ever sent blindly a second time. docs/blueprints.md#writes.
 */
export interface NodeWrites {
  /** The same whenever this run sends this write. */
  token(ordinal: number): string;
  /** What is missing was never begun. */
  known(first: number, count: number): Promise<ReadonlyMap<number, KnownWrite>>;
  /** Commits the intent. Throws when the run is not this worker's any more, or the write is not to be sent. */
  begin(ordinal: number): Promise<void>;
  /**
   * Sends its request. Once sent it is let finish for a while when the run is stopped, so that its outcome is known. A run that is
   * stopped, or that others may carry by now, before the first byte has left is told so by a throw, and the write is ruled out.
   */
  send(request: OutboundRequest, ordinal: number): Promise<OutboundResponse>;
  finish(ordinal: number, outcome: Json): Promise<void>;
  /** It did not happen: the target refused it, or it was looked up and isn't there. */
  refuse(ordinal: number): Promise<void>;
  ruleOut(ordinal: number): Promise<void>;
  /** It may have happened. `detail`: why, for the operator, who is shown the request as well, where it is known. */
  doubt(ordinal: number, detail: string, request: OutboundRequest | null): Promise<void>;
  /** The run waits for the operator's decision on writes in doubt. Always throws. */
  askOperator(): never;
}

/** A mistake in a node's configuration that its schema can't express. `path` is inside the node, e.g. `["request", "method"]`. */
export interface ConfigFinding {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** What a node type's `check` may know of the common keys, if the caller has them. */
export type CheckedCommon = Pick<BlueprintNode, "from" | "credential" | "timeoutMs">;

export interface NodeType {
  readonly type: string;
  readonly description: string;
  /**
   * The keys of its own, besides the common ones (`additionalProperties: false`). Expressions and templates are marked by
   * the annotations of `#domain/expression.ts`, so that `apply` finds and checks every one.
   */
  readonly schema: TObject;
  /** What `from` must give; `none`: the node takes no `from`. */
  readonly takes: "none" | "value" | "records";
  /** Whether the node may (`optional`), must or can't name a credential slot or send requests. */
  readonly usesCredential: boolean;
  gives(config: JsonObject): FlowKind | "results";
  /** `none`: pure, streamed and recomputed after a crash. Others are checkpointed in the journal. */
  effect(config: JsonObject): "none" | "read" | "write";
  /** What the templates of its requests may read; default `run`. Called with any config. */
  requestScope?(config: JsonObject): ExpressionScopeKind;
  /** What the expressions of a scope read besides the variables of the scope. Called with any config. */
  addsVariables?(config: JsonObject): AddedVariables;
  /**
   * A person stands there. When its `when` is false its records go through; its `timeout` is how long it waits for the person,
   * not how long it works.
   */
  readonly isGate?: true;
  /** Its `timeout` is that of each request that it sends, so that one that hangs can be tried again. */
  readonly timesRequests?: true;
  /** It works through the records of its `for_each` one by one, and keeps each turn in the journal: their places are fixed before the first. */
  readonly hasTurns?: true;
  /** Its records hold texts that can't be read in the bytes of a response: it unpacks them. They are cleaned of secrets once more. */
  unpacks?(config: JsonObject): boolean;
  /** Mistakes that the schema can't express. Called only with a config that satisfies the schema. */
  check?(config: JsonObject, common?: CheckedCommon): readonly ConfigFinding[];
  /** What a config without a mistake leaves to chance: shown, and applied all the same. */
  warn?(config: JsonObject): readonly ConfigFinding[];
  run(context: NodeContext, config: JsonObject): Promise<Flow | null>;
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

/** What a file says of its type; what it leaves out is that of a node that makes records of records. */
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

/** What a JSON Schema says by `required`, TypeBox says at each property. */
function typedSchema({ properties = {}, required = [], ...options }: ObjectSchema): TObject {
  const typed: TProperties = Object.fromEntries(
    Object.entries(properties).map(([key, property]) => [
      key,
      required.includes(key) ? property : Type.Optional(property),
    ]),
  );
  return Type.Object(typed, { ...options, additionalProperties: false });
}

/** A node that a key of another one names. */
export interface NamedSource {
  /** Where it is named, inside the node. */
  readonly path: readonly (string | number)[];
  readonly source: string;
  /** What the source must give, if that is not what the node's `from` must. */
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
      return named(config["for_each"], ["for_each"], "records");
    case "join":
      return named(config["with"], ["with"]);
    default:
      return [];
  }
}

/** Files that the steps of a loop send and that no step gives: they are a node's. */
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

/** Where a request names nodes that give files: `file`, and `multipart.<name>.file`, or of an item of its list. */
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

/** What a source gives to a node that names it. */
export function flowFrom(context: Pick<NodeContext, "node" | "from">, source: string): Flow {
  return must(context.from[edgesOf(context.node).indexOf(source)], `what the node ${source} gives`);
}

/** The node failed; the run fails with it. The message is for the operator: names and counts, no values of the data. */
export class NodeFailure extends Error {
  override readonly name = "NodeFailure";
  /** The answer that it is about; unless it says, the node's last one. Operators are shown its beginning. */
  readonly answer: OutboundResponse | null;

  constructor(message: string, options: { cause?: unknown; answer?: OutboundResponse } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.answer = options.answer ?? null;
  }
}

export type { Json };
