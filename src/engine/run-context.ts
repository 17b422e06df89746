import type { Lease } from "#db/lease.ts";
import type { ClaimedRun } from "#db/runs.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import type { Value } from "#domain/value.ts";
import type { NewResult } from "#db/run-results.ts";
import type { PlannedNode, RunPlan } from "./plan-run.ts";
import type { EngineServices } from "./services.ts";
import type { Redactor } from "./redact.ts";
import type { RecordCounts, Scratch } from "./spool.ts";
import type { TargetSession } from "./target-session.ts";
import type { RecordBatches } from "#domain/record.ts";

/** What a node gave, to whoever reads it; records are opened anew by each reader. */
export type NodeOutput =
  | { readonly kind: "value"; readonly value: Value }
  | {
      readonly kind: "records";
      readonly open: () => RecordBatches;
      /** Known once the records have been kept or checkpointed. */
      readonly counts: RecordCounts | null;
    };

/** One run while it is carried: what the nodes before have given, and what the next ones need. */
export interface RunContext {
  readonly services: EngineServices;
  readonly run: ClaimedRun;
  readonly lease: Lease;
  readonly plan: RunPlan;
  readonly signal: AbortSignal;
  readonly scratch: Scratch;
  readonly redact: Redactor;
  readonly inputs: ReadonlyMap<string, Value>;
  /** By slot. */
  readonly targets: ReadonlyMap<string, TargetSession>;
  /** For nodes without a credential. */
  readonly openTarget: TargetSession;
  readonly variables: { readonly [name: string]: Json };
  readonly expressions: BoundExpressions;
  /** Bindings of single nodes, released with the run. */
  readonly bindings: { release(): void }[];
  readonly outputs: Map<string, NodeOutput>;
  readonly results: Map<string, NewResult>;
  /** What the run's row has as its `progress_step`: to show the same again takes no statement. */
  readonly shown: { step: string };
}

export type { PlannedNode };
