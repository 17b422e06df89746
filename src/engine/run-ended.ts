import type { PollPlace } from "#db/runs/polls.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunErrorKind } from "#domain/run.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";

/** Why a run stops before its end: the reason of its AbortSignal, and what is thrown at the next boundary. */
export type StopReason =
  /** The service shuts down: the run is handed back. */
  | "drain"
  /** Another worker has it, or it is terminal already: nothing more is written. */
  | "lease_lost"
  /** A caller or an operator has cancelled it: it is terminal already. */
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
}

/** The run fails. `message` is the operator's story; callers see only the fixed sentence of `kind`. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
  readonly kind: RunErrorKind;
  /** The target's answer that it failed with, and the step of the login that asked for it. */
  readonly answer: ShownAnswer | null;
  readonly loginStep: string | null;

  constructor(kind: RunErrorKind, message: string, options: RunFailureOptions = {}) {
    super(message);
    this.kind = kind;
    this.answer = options.answer ?? null;
    this.loginStep = options.loginStep ?? null;
  }
}

/** Not an end: the run waits for a person, and holds nothing meanwhile. */
export class RunParked extends Error {
  override readonly name: string = "RunParked";
  /** What the person is asked: its row, in the transaction that parks the run. */
  readonly ask: (tx: Database) => Promise<void>;

  constructor(ask: (tx: Database) => Promise<void> = async () => {}) {
    super();
    this.ask = ask;
  }
}

/** Not an end: the run waits until a read asks again, and holds nothing meanwhile. */
export class RunAsksLater extends RunParked {
  override readonly name = "RunAsksLater";
  readonly place: PollPlace;
  readonly waitMs: number;

  constructor(place: PollPlace, waitMs: number) {
    super();
    this.place = place;
    this.waitMs = waitMs;
  }
}

/** Not an end either: the run waits for its turn, and holds nothing meanwhile. */
export class RunInLine extends RunParked {
  override readonly name = "RunInLine";
  /** As in the run's row. */
  readonly line: string;
  /** How long it has waited in its place, which was not its time. */
  readonly waitedMs: number;

  constructor(line: string, waitedMs: number) {
    super();
    this.line = line;
    this.waitedMs = waitedMs;
  }
}
