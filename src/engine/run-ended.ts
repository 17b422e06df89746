import type { PollPlace } from "#db/runs/polls.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunErrorKind } from "#domain/run.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";

/** Why a run stops before its end: the reason of its AbortSignal, and the error thrown at the next boundary. */
export type StopReason =
  /** The service is shutting down: the run is handed back. */
  | "drain"
  /** Another worker has it, or it is already terminal: nothing more is written. */
  | "lease_lost"
  /** A caller or an operator cancelled it: it is already terminal. */
  | "cancelled"
  | "timeout"
  | "credential_deleted";

export class RunStopped extends Error {
  override readonly name = "RunStopped";
  readonly reason: StopReason;

  constructor(reason: StopReason) {
    super(`the run was stopped: ${reason}`);
    this.reason = reason;
  }
}

interface RunFailureOptions {
  readonly answer?: ShownAnswer | null;
  readonly loginStep?: string | null;
  readonly evidence?: NewEvidence | null;
}

/** The run fails. `message` is for the operator; callers see only the fixed sentence of `kind`. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
  readonly kind: RunErrorKind;
  /** The target's answer that caused the failure, and the login step that requested it. */
  readonly answer: ShownAnswer | null;
  readonly loginStep: string | null;
  /** What the page of the login's browser showed. */
  readonly evidence: NewEvidence | null;

  constructor(kind: RunErrorKind, message: string, options: RunFailureOptions = {}) {
    super(message);
    this.kind = kind;
    this.answer = options.answer ?? null;
    this.loginStep = options.loginStep ?? null;
    this.evidence = options.evidence ?? null;
  }
}

/** Not an end: the run waits for a person and holds nothing in the meantime. */
export class RunParked extends Error {
  override readonly name: string = "RunParked";
  /** Writes the review's row, in the transaction that parks the run. */
  readonly ask: (tx: Database) => Promise<void>;

  constructor(ask: (tx: Database) => Promise<void> = async () => {}) {
    super();
    this.ask = ask;
  }
}

/** Not an end: the run waits for its next poll and holds nothing in the meantime. */
export class RunPollsLater extends RunParked {
  override readonly name = "RunPollsLater";
  readonly place: PollPlace;
  readonly waitMs: number;

  constructor(place: PollPlace, waitMs: number) {
    super();
    this.place = place;
    this.waitMs = waitMs;
  }
}

/** Not an end: the run waits for its turn and holds nothing in the meantime. */
export class RunQueued extends RunParked {
  override readonly name = "RunQueued";
  /** As in the run's row. */
  readonly line: string;
  /** How long it waited in its slot, which does not count towards its timeout. */
  readonly waitedMs: number;

  constructor(line: string, waitedMs: number) {
    super();
    this.line = line;
    this.waitedMs = waitedMs;
  }
}
