import type { Lease } from "#db/runs/lease.ts";
import type { PollPlace } from "#db/runs/polls.ts";
import type { FinishedStep } from "#db/runs/run-steps.ts";
import type { FinishedTurn, StoredTurn } from "#db/runs/run-turns.ts";
import type { EndedWrite, StoredWrite } from "#db/runs/run-writes.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import type { Value } from "#domain/value.ts";
import type { NewResult } from "#db/runs/run-results.ts";
import type { Door } from "./redaction/door.ts";
import type { PlannedNode, RunPlan } from "./plan-run.ts";
import type { EngineServices } from "./services.ts";
import type { Redactor } from "./redaction/redact.ts";
import type { RecordCounts, Scratch } from "./outputs/spool.ts";
import type { TargetSession } from "./login/target-session.ts";
import type { RecordBatches } from "#domain/record.ts";

/** What a node gave, for those that read it; records are opened anew by each reader. */
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
  readonly services: Pick<EngineServices, "blobs" | "expressions" | "log" | "clock" | "random">;
  readonly journal: RunJournal;
  readonly run: ClaimedRun;
  readonly lease: Lease;
  readonly plan: RunPlan;
  readonly signal: AbortSignal;
  readonly scratch: Scratch;
  readonly redact: Redactor;
  /** For what comes in without a credential, or packed. */
  readonly door: Door;
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
  /** Told what nodes warn of, where somebody watches: an author's own run. */
  readonly onWarning?: (nodeId: string, message: string) => void;
}

/** How far apart a read asks, and for how long at most. */
export interface PollTimes {
  readonly everyMs: number;
  readonly forMs: number;
}

type StepSource = { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array };

/**
 * What a run writes down while its nodes are carried, and whom it asks. In the service that is the database, under the run's lease
 * (`database-journal.ts`); an author's own run keeps it in memory. `false` (or undefined): the lease is lost.
 */
export interface RunJournal {
  /** Shows a finer step. */
  moveStep(step: string): Promise<boolean>;
  startStep(nodeId: string): Promise<boolean>;
  finishStep(step: Omit<FinishedStep, "lease" | "accountId">): Promise<boolean>;
  /** `detail` and `log` are redacted. */
  failStep(nodeId: string, detail: string, tookMs: number, log: string): Promise<void>;
  /** What a step that was begun has to say while the run waits. `log` is redacted. */
  noteStep(nodeId: string, log: string): Promise<void>;
  /** The object with the records that a node works through one by one; null before they were kept. */
  findSource(nodeId: string): Promise<string | null>;
  saveSource(nodeId: string, blob: StepSource): Promise<boolean>;
  /** The writes of a node with these places, as far as they were begun. */
  listWrites(nodeId: string, first: number, count: number): Promise<readonly StoredWrite[]>;
  /** What these steps of a loop have given for the records at these places. */
  listTurns(nodeIds: readonly string[], first: number, count: number): Promise<readonly StoredTurn[]>;
  keepTurn(turn: FinishedTurn): Promise<boolean>;
  /** How many records a loop goes through, for the operator. */
  noteTurns(nodeId: string, total: number): Promise<void>;
  /** Throws RunStopped when others may carry the run by now. */
  mayWrite(): void;
  /** The intent, before the request is sent. */
  beginWrite(nodeId: string, ordinal: number): Promise<boolean>;
  endWrite(write: EndedWrite): Promise<boolean>;
  /** Waits for the node's next free moment, one every `spacingMs`. Throws RunInLine, or what aborts the signal. */
  takeSlot(nodeId: string, spacingMs: number, signal: AbortSignal): Promise<void>;
  /** A read's answer would not do: waits until it may ask again. False: its time is over. Throws RunAsksLater, or what aborts the signal. */
  askAgain(place: PollPlace, times: PollTimes, signal: AbortSignal): Promise<boolean>;
  /** Takes one of the run's retries. False: they are used up. */
  takeRetry(retriesMax: number): Promise<boolean | undefined>;
  /** Whether a person was asked at this node already. */
  isReviewAsked(nodeId: string): Promise<boolean>;
  /** The records as a person left them. Throws RunParked until they are decided on. */
  review(
    run: RunContext,
    planned: PlannedNode,
    records: RecordBatches,
    ask: () => Promise<ReviewQuestion>,
  ): Promise<RecordBatches>;
}

export type { PlannedNode };
