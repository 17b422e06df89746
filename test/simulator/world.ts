import { createHash, type Hash } from "node:crypto";
import { EventQueue, type SimEvent } from "./event-queue.ts";
import { RealWork, type ListBlocked } from "./real-work.ts";
import { SeededRandom } from "./seeded-random.ts";

/** A line of the story: who did what, and when. */
export interface StoryLine {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

export interface WorldOptions {
  readonly seed: number;
  readonly listBlocked: ListBlocked;
  /** Told every event, of which otherwise the digest alone is kept. */
  readonly onEvent?: ((line: string) => void) | undefined;
}

/** What oracles look at after its COMMIT: runs that were admitted; effects that have audit entries, and these. */
export type Change = "admissions" | "effects";

/** Where the simulation takes place: its time, its chance, what will happen, and what has. One event happens at a time. */
export class World {
  readonly random: SeededRandom;
  readonly #root: SeededRandom;
  readonly #chances = new Map<string, SeededRandom>();
  readonly work: RealWork;
  readonly story: StoryLine[] = [];
  /** What nobody expected: an error that no part of the product is prepared for. */
  readonly surprises: string[] = [];
  readonly #queue = new EventQueue();
  readonly #digest: Hash = createHash("sha256");
  readonly #onEvent: ((line: string) => void) | undefined;
  readonly #over = Promise.withResolvers<void>();
  #isOver = false;
  #nowMs = 0;
  #orders = 0;
  #events = 0;
  /** When what a process does at a point that it came to is over. */
  faultsUntilMs = 0;
  /** How often each kind of change was committed. */
  readonly changes: Record<Change, number> = { admissions: 0, effects: 0 };

  constructor({ seed, listBlocked, onEvent }: WorldOptions) {
    this.random = new SeededRandom(seed);
    this.#root = new SeededRandom(seed).fork("chances");
    this.work = new RealWork(listBlocked);
    this.#onEvent = onEvent;
  }

  /**
   * A sequence for one thing. Of what happens in one event, files and threads decide what comes first; so what is drawn for one thing must
   * not depend on what is drawn for another one.
   */
  chance(name: string): SeededRandom {
    let chance = this.#chances.get(name);
    if (chance === undefined) this.#chances.set(name, (chance = this.#root.fork(name)));
    return chance;
  }

  /** Milliseconds since the beginning. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get events(): number {
    return this.#events;
  }

  /** What happens after `ms`. Gives the way to call it off. */
  after(ms: number, label: string, act: () => void): () => void {
    const event: SimEvent = { atMs: this.#nowMs + ms, order: this.#orders++, label, act, isOff: false };
    this.#queue.push(event);
    return () => {
      event.isOff = true;
    };
  }

  /** Nothing happens any more: what is open is given up. */
  end(): void {
    this.#isOver = true;
    this.#over.resolve();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async untilOver(): Promise<void> {
    await this.#over.promise;
  }

  tell(who: string, what: string): void {
    this.story.push({ atMs: this.#nowMs, who, what });
    this.#note(`${who}: ${what}`);
  }

  #note(text: string): void {
    const line = `${this.#nowMs.toFixed(3)} ${text}`;
    this.#digest.update(`${line}\n`);
    this.#onEvent?.(line);
  }

  /** The next event, and all that follows from it at once. False: nothing will happen any more. */
  async step(): Promise<boolean> {
    const event = this.#queue.pop();
    if (event === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, event.atMs);
    this.#events++;
    this.#note(event.label);
    event.act();
    await this.work.settle();
    return true;
  }

  /** Of all that has happened so far. */
  digest(): string {
    return this.#digest.copy().digest("hex");
  }
}
