import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { PollPlace } from "#db/runs/polls.ts";
import type { FinishedStep } from "#db/runs/run-steps.ts";
import type { FinishedTurn, StoredTurn } from "#db/runs/run-turns.ts";
import type { EndedWrite, StoredWrite } from "#db/runs/run-writes.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { Json } from "#domain/json.ts";
import type { ReviewQuestion } from "#domain/review.ts";
import type { Value } from "#domain/value.ts";
import type { NewResult } from "#db/runs/run-results.ts";
import type { Bound } from "#expressions/evaluator.ts";
import type { WholeFlow } from "#nodes/at-once.ts";
import type { Door } from "./redaction/door.ts";
import type { PlannedNode, RunPlan } from "./plan-run.ts";
import type { EngineServices } from "./services.ts";
import type { Redactor } from "./redaction/redact.ts";
import type { RecordCounts, Scratch } from "./outputs/spool.ts";
import type { TargetSession } from "./login/target-session.ts";
import type { Tallies } from "./tallies.ts";
import type { RecordBatches } from "#domain/record.ts";

/** A node's output, for its readers; each reader opens the records again. */
export type NodeOutput =
  | { readonly kind: "value"; readonly value: Value }
  | {
      readonly kind: "records";
      readonly open: () => RecordBatches;
      /** Known once the records are stored. */
      readonly counts: RecordCounts | null;
      /** The records without waiting; null: they are too many, or their node has to wait. */
      readonly whole?: () => WholeFlow | null;
    };

/** The state of a run while it is executed: the outputs of earlier nodes, and everything that the next ones need. */
export interface RunContext {
  readonly services: Pick<EngineServices, "blobs" | "expressions" | "log" | "clock" | "random">;
  readonly journal: RunJournal;
  readonly run: ClaimedRun;
  readonly lease: Lease;
  readonly plan: RunPlan;
  readonly signal: AbortSignal;
  readonly scratch: Scratch;
  readonly redact: Redactor;
  /** For responses without a credential, and packed content. */
  readonly door: Door;
  readonly inputs: ReadonlyMap<string, Value>;
  /** By slot. */
  readonly targets: ReadonlyMap<string, TargetSession>;
  /** The target for nodes without a credential. */
  readonly openTarget: TargetSession;
  readonly variables: { readonly [name: string]: Json };
  readonly expressions: Bound;
  /** Bindings of single nodes, released with the run. */
  readonly bindings: { release(): void }[];
  readonly outputs: Map<string, NodeOutput>;
  readonly results: Map<string, NewResult>;
  readonly tallies: Tallies;
  /** The `progress_step` in the run's row: showing the same one again needs no statement. */
  readonly shown: { step: string };
  /** Receives the nodes' warnings in a local run. */
  readonly onWarning?: (nodeId: string, message: string) => void;
  /** Receives what pages showed, in a local run. */
  readonly onEvidence?: (nodeId: string, evidence: NewEvidence) => void;
}

/** The interval of a poll and its maximum duration. */
export interface PollTimes {
  readonly everyMs: number;
  readonly forMs: number;
}

type StoredObject = { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array };

/**
 * Everything that a run records while its nodes execute, and its waits and reviews. In the service this is the database, under the run's
 * lease (`database-journal.ts`); a local run keeps it in memory. `false` (or undefined): the lease is lost.
 */
export interface RunJournal {
  /** Shows a progress step. */
  moveStep(step: string): Promise<boolean>;
  startStep(nodeId: string): Promise<boolean>;
  finishStep(step: Omit<FinishedStep, "lease" | "accountId" | "tally">): Promise<boolean>;
  /** `detail` and `log` are redacted. */
  failStep(nodeId: string, detail: string, tookMs: number, log: string): Promise<void>;
  /** Records the log of a begun step while the run waits. `log` is redacted. */
  noteStep(nodeId: string, log: string): Promise<void>;
  /** The object with the records that a node processes one by one; null: not stored yet. */
  findSource(nodeId: string): Promise<string | null>;
  saveSource(nodeId: string, blob: StoredObject): Promise<boolean>;
  /** Adds the object of a picture to the run's. */
  savePicture(blob: StoredObject): Promise<boolean>;
  /** Does `work` with the browser of a node, whose page operators may watch meanwhile. */
  whileShown<T>(browser: Pick<StepBrowser, "picture">, work: () => Promise<T>): Promise<T>;
  /** The begun writes of a node with these ordinals. */
  listWrites(nodeId: string, first: number, count: number): Promise<readonly StoredWrite[]>;
  /** The outputs of these loop steps for the records with these ordinals. */
  listTurns(nodeIds: readonly string[], first: number, count: number): Promise<readonly StoredTurn[]>;
  storeIteration(turn: FinishedTurn): Promise<boolean>;
  /** Number of records that a loop processes, for the operator. */
  noteTurns(nodeId: string, total: number): Promise<void>;
  /** Throws RunStopped when another worker may have the run by now. */
  mayWrite(): void;
  /** The intent, before the request is sent. */
  beginWrite(nodeId: string, ordinal: number): Promise<boolean>;
  endWrite(write: EndedWrite): Promise<boolean>;
  /** A wait for others, which does not count towards the timeout of the run. */
  standStill<T>(wait: () => Promise<T>): Promise<T>;
  /** Waits for the node's next throttle slot, one every `spacingMs`. Throws RunQueued, or the signal's reason. */
  takeSlot(nodeId: string, spacingMs: number, signal: AbortSignal): Promise<void>;
  /** The same for a host of the account's `throttle`, if it has this one. */
  takeHostSlot(origin: string, signal: AbortSignal): Promise<void>;
  /** Waits for the next poll. False: the poll's time limit has passed. Throws RunPollsLater, or the signal's reason. */
  askAgain(place: PollPlace, times: PollTimes, signal: AbortSignal): Promise<boolean>;
  /** Takes one of the run's retries. False: none are left. */
  takeRetry(retriesMax: number): Promise<boolean | undefined>;
  /** Whether the review of this node was already requested. */
  isReviewAsked(nodeId: string): Promise<boolean>;
  /** The records with the reviewer's changes. Throws RunParked until the review is decided. */
  review(
    run: RunContext,
    planned: PlannedNode,
    records: RecordBatches,
    ask: () => Promise<ReviewQuestion>,
  ): Promise<RecordBatches>;
}

export type { PlannedNode };
