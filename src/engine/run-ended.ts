import type { Database } from "#db/pool.ts";
import type { RunErrorKind } from "#domain/run.ts";

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

/** The run fails. `message` is the operator's story; callers see only the fixed sentence of `kind`. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
  readonly kind: RunErrorKind;

  constructor(kind: RunErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
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
