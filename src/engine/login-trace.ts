import type { Lease } from "#db/lease.ts";
import { failStep, finishStep } from "#db/run-steps.ts";
import type { LoginSteps } from "#strategies/define-login.ts";
import { outlastLocks } from "./outlast-locks.ts";
import type { RunFailure } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";

interface TracedStep {
  readonly name: string;
  readonly beganMs: number;
  /** Author's words, origins and numbers alone: nothing of a credential, and nothing that a target answered. */
  readonly lines: { message: string; origin?: string; status?: number }[];
}

/** What stands before a login's first step, and is all there is of a login without steps. */
const FIRST = "login";

/** What a test login writes down: each step when it is over. They say what happened and decide nothing. */
export class LoginTrace implements LoginSteps {
  readonly #of: { readonly db: EngineServices["db"]; readonly lease: Lease; readonly accountId: string };
  #last: TracedStep | null = null;
  #isAsking = false;
  /** Those that are over, in their order. */
  #saved: Promise<unknown> = Promise.resolve();

  constructor(db: EngineServices["db"], lease: Lease, accountId: string) {
    this.#of = { db, lease, accountId };
  }

  begin(name: string): void {
    if (this.#last) this.#save(this.#last, null);
    this.#last = { name, beganMs: performance.now(), lines: [] };
  }

  skip(): void {
    this.#current().lines.push({ message: "left out: its `when` is not true" });
  }

  /** A request is about to go there. */
  asks({ origin }: URL): void {
    this.#isAsking = true;
    this.#current().lines.push({ message: "asked", origin });
  }

  answered(status: number): void {
    const line = this.#current().lines.findLast((each) => each.status === undefined);
    if (line) line.status = status;
  }

  /** The last step is over, or has failed. */
  async end(failure: RunFailure | null): Promise<void> {
    const last = this.#current();
    if (!this.#isAsking && failure === null)
      last.lines.push({
        message: "Nothing was sent: this kind of login is tested by the first request of a run alone.",
      });
    this.#save(last, failure);
    await this.#saved;
  }

  #current(): TracedStep {
    this.#last ??= { name: FIRST, beganMs: performance.now(), lines: [] };
    return this.#last;
  }

  #save({ name: nodeId, beganMs, lines }: TracedStep, failure: RunFailure | null): void {
    const { db, ...place } = this.#of;
    const log = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const tookMs = performance.now() - beganMs;
    const step = { ...place, nodeId, tookMs, log };
    this.#saved = this.#saved.then(
      async () =>
        await outlastLocks(async () =>
          failure === null
            ? await finishStep(db, { ...step, ...NOTHING_GIVEN })
            : await failStep(db, { ...step, detail: failure.message }),
        ),
    );
    // Whoever ends the trace hears of it.
    this.#saved.catch(() => {});
  }
}

const NOTHING_GIVEN = {
  outputKind: "absent",
  output: null,
  blob: null,
  filename: null,
  contentType: null,
  recordsTotal: null,
  recordsValid: null,
} as const;
