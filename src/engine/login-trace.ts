import type { Lease } from "#db/lease.ts";
import { failStep, finishStep } from "#db/run-steps.ts";
import type { LoginSteps } from "#strategies/define-login.ts";
import { RunFailure } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";

interface TracedStep {
  readonly name: string;
  readonly beganMs: number;
  tookMs: number;
  /** Author's words, origins and numbers alone: nothing of a credential, and nothing that a target answered. */
  readonly lines: { message: string; origin?: string; status?: number }[];
}

/** What stands before a login's first step, and is all there is of a login without steps. */
const FIRST = "login";

/** What a test login writes down of each of its steps. */
export class LoginTrace implements LoginSteps {
  readonly #steps: TracedStep[] = [];

  begin(name: string): void {
    this.#close();
    this.#steps.push({ name, beganMs: performance.now(), tookMs: 0, lines: [] });
  }

  skip(): void {
    this.#last().lines.push({ message: "left out: its `when` is not true" });
  }

  /** A request is about to go there. */
  asks({ origin }: URL): void {
    this.#last().lines.push({ message: "asked", origin });
  }

  answered(status: number): void {
    const line = this.#last().lines.findLast((each) => each.status === undefined);
    if (line) line.status = status;
  }

  /** The steps become those of the run; the last one failed, if it did. They say what happened and decide nothing. */
  async save(
    { db }: Pick<EngineServices, "db">,
    lease: Lease,
    accountId: string,
    error: unknown,
  ): Promise<void> {
    this.#close();
    if (this.#steps.every(({ lines }) => lines.length === 0) && error === null)
      this.#last().lines.push({
        message: "Nothing was sent: this kind of login is tested by the first request of a run alone.",
      });
    const failed = error instanceof RunFailure ? this.#last() : null;
    for (const { name: nodeId, tookMs, lines } of this.#steps) {
      const log = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      const step = { lease, accountId, nodeId, tookMs, log };
      if (failed?.name === nodeId && error instanceof RunFailure)
        await failStep(db, { ...step, detail: error.message });
      else await finishStep(db, { ...step, ...NOTHING_GIVEN });
    }
  }

  #last(): TracedStep {
    if (this.#steps.length === 0) this.begin(FIRST);
    return this.#steps.at(-1) as TracedStep;
  }

  #close(): void {
    const last = this.#steps.at(-1);
    if (last) last.tookMs = performance.now() - last.beganMs;
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
