import type { Lease } from "#db/runs/lease.ts";
import { failStep, finishStep } from "#db/runs/run-steps.ts";
import { SKIPPED_LINE } from "#domain/test-login.ts";
import type { LoginSteps } from "#strategies/define-login.ts";
import { retryWhileLocked } from "#engine/waiting/retry-while-locked.ts";
import type { RunFailure } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

interface TracedStep {
  readonly name: string;
  readonly beganMs: number;
  /** Only the author's texts, origins and numbers: no part of a credential and no answer of a target, except the answer that failed. */
  readonly lines: { message: string; origin?: string; status?: number }[];
}

/** The entry before a login's first step; the only one for a login without steps. */
const FIRST = "login";
/** The entry in place of steps that must not be shown. */
const HIDDEN = "what is not shown";
const WHY_HIDDEN =
  "Not shown: conditions of the login use secret fields. Change them; `latchkey validate` says how.";

/** Logs each step of a test login when it ends. It only observes. */
export class LoginTrace implements Omit<LoginSteps, "read"> {
  readonly #of: { readonly db: EngineServices["db"]; readonly lease: Lease; readonly accountId: string };
  #last: TracedStep | null = null;
  #isAsking = false;
  /** Steps that have begun. */
  #begun = 0;
  #hiddenFrom = Infinity;
  /** Finished steps, in order. */
  #saved: Promise<unknown> = Promise.resolve();

  constructor(db: EngineServices["db"], lease: Lease, accountId: string) {
    this.#of = { db, lease, accountId };
  }

  /** The first step that is not logged. Of it and later ones neither the course nor the number is recorded. */
  hideFrom(step: number): void {
    this.#hiddenFrom = step;
  }

  begin(name: string): void {
    this.#begun++;
    if (this.#isHidden && this.#begun > this.#hiddenFrom + 1) return;
    if (this.#last) this.#save(this.#last, null);
    this.#last = this.#newStep(name);
  }

  skip(): void {
    this.#write({ ...SKIPPED_LINE });
  }

  /** A request is about to be sent there. */
  asks({ origin }: URL): void {
    this.#isAsking = true;
    this.#write({ message: "asked", origin });
  }

  answered(status: number): void {
    if (this.#isHidden) return;
    const line = this.#current().lines.findLast((each) => each.status === undefined);
    if (line) line.status = status;
  }

  /** The last step has ended or failed. `shown`: lines of what operators see of a failure. */
  async end(failure: RunFailure | null, shown: readonly string[]): Promise<void> {
    const last = this.#current();
    if (!this.#isAsking && failure === null && !this.#isHidden)
      last.lines.push({
        message:
          "Nothing was sent, so nothing is known about the credential: the login has no `check`. Add one, or see what the first request of a run says.",
      });
    this.#save(last, failure, shown);
    await this.#saved;
  }

  #current(): TracedStep {
    this.#last ??= this.#newStep(FIRST);
    return this.#last;
  }

  get #isHidden(): boolean {
    // A login without steps counts as its first step.
    return Math.max(this.#begun, 1) > this.#hiddenFrom;
  }

  #newStep(name: string): TracedStep {
    const beganMs = performance.now();
    return this.#isHidden
      ? { name: HIDDEN, beganMs, lines: [{ message: WHY_HIDDEN }] }
      : { name, beganMs, lines: [] };
  }

  #write(line: TracedStep["lines"][number]): void {
    if (!this.#isHidden) this.#current().lines.push(line);
  }

  #save(
    { name: nodeId, beganMs, lines }: TracedStep,
    failure: RunFailure | null,
    shown: readonly string[] = [],
  ): void {
    const { db, ...place } = this.#of;
    const log = [...lines.map((line) => JSON.stringify(line)), ...shown].map((line) => `${line}\n`).join("");
    // The duration would disclose what was done.
    const tookMs = nodeId === HIDDEN ? 0 : performance.now() - beganMs;
    const step = { ...place, nodeId, tookMs, log };
    this.#saved = this.#saved.then(
      async () =>
        await retryWhileLocked(async () =>
          failure === null
            ? await finishStep(db, { ...step, ...NOTHING_GIVEN })
            : await failStep(db, { ...step, detail: failure.message }),
        ),
    );
    // The code that ends the trace receives the error.
    this.#saved.catch(() => {});
  }
}

const NOTHING_GIVEN = {
  tally: null,
  outputKind: "absent",
  output: null,
  blob: null,
  filename: null,
  contentType: null,
  recordsTotal: null,
  recordsValid: null,
} as const;
