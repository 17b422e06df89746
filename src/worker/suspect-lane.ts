import { setTimeout as sleep } from "node:timers/promises";

/** How long what is under way may go on when a suspect wants to be alone; then it is handed back. */
const COMPANY_MS = 5_000;
const LOOK_EVERY_MS = 1_000;

export interface LaneOptions {
  /** Does something while no other run begins. */
  readonly between: (task: () => Promise<void>) => Promise<void>;
  /** One for each run under way: it is over with it. */
  readonly company: () => readonly Promise<void>[];
  readonly handBack: () => void;
  readonly isStopped: () => boolean;
}

export interface Suspect {
  /** Begins the run, and is over with it. */
  readonly carry: () => Promise<unknown>;
  /** False once it has got further, and others may be carried beside it. */
  readonly isSuspect: () => Promise<boolean>;
}

/**
 * A process that dies takes all its runs with it, and nobody can tell which of them it died of. So the loss that ends a run counts
 * only when no other was there: a run that has lost all leases but the last without getting further is carried alone, until
 * it gets further or is over. Others lose no more than the company that they kept. Design, page 6, 6.1 and F14.
 */
export class SuspectLane {
  readonly #options: LaneOptions;
  #last: Promise<unknown> = Promise.resolve();
  #inside = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** One is alone, or waits to be: nothing else may begin. */
  get isClosed(): boolean {
    return this.#inside > 0;
  }

  /** One after the other. False: the worker was stopped first, and the run was not begun. */
  async carry(suspect: Suspect): Promise<boolean> {
    this.#inside++;
    const begun: Promise<unknown>[] = [];
    const turn = this.#last.then(
      async () =>
        await this.#options.between(async () => {
          await this.#beAlone();
          if (this.#options.isStopped()) return;
          const carried = suspect.carry();
          begun.push(carried);
          await this.#whileSuspect(carried, suspect);
        }),
    );
    this.#last = turn.catch(() => {}).finally(() => this.#inside--);
    await turn;
    await Promise.all(begun);
    return begun.length > 0;
  }

  async #beAlone(): Promise<void> {
    await Promise.race([this.#companyGone(), sleep(COMPANY_MS, undefined, { ref: false })]);
    if (this.#options.company().length > 0) this.#options.handBack();
    await this.#companyGone();
  }

  async #companyGone(): Promise<void> {
    while (this.#options.company().length > 0) await Promise.all(this.#options.company());
  }

  async #whileSuspect(carried: Promise<unknown>, { isSuspect }: Suspect): Promise<void> {
    let isOver = false;
    const over = carried.finally(() => (isOver = true));
    for (;;) {
      await Promise.race([over, sleep(LOOK_EVERY_MS, undefined, { ref: false })]);
      // While nobody can say, it is one.
      if (isOver || !(await isSuspect().catch(() => true))) return;
    }
  }
}
