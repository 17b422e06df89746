import { APIS } from "./faults.ts";
import {
  startApi,
  startWorker,
  type Parts,
  type SimApi,
  type SimWorker,
  type Surroundings,
} from "./processes.ts";
import type { SimProcess } from "./sim-process.ts";

/** A process that ended by itself, or by its run, is started again after this. */
export const BACK_AFTER_MS = 1_500;

/** The processes that are there, by the names of their machines. */
export class Fleet {
  readonly #around: Surroundings;
  readonly #workers: readonly string[];
  readonly #up = new Map<string, Parts>();
  readonly #starts = new Map<string, number>();

  /** `workers`: names of some of WORKERS. */
  constructor(around: Surroundings, workers: readonly string[]) {
    this.#around = around;
    this.#workers = workers;
  }

  /** One after the other: which of two real connections comes about first is chance. */
  async startAll(): Promise<void> {
    for (const name of [...APIS, ...this.#workers]) {
      this.start(name);
      await this.#around.world.work.settle();
    }
  }

  start(name: string): void {
    const count = (this.#starts.get(name) ?? 0) + 1;
    this.#starts.set(name, count);
    const unique = count === 1 ? name : `${name}.${count}`;
    const isApi = (APIS as readonly string[]).includes(name);
    const onFailed = (self: SimProcess): void =>
      void this.#around.world.after(BACK_AFTER_MS, "back after its start", () => this.startAgain(self));
    this.#up.set(name, isApi ? startApi(this.#around, unique) : startWorker(this.#around, unique, onFailed));
  }

  /** In place of a process that has crashed; a quarantine is started by its worker. */
  startAgain(crashed: SimProcess): void {
    for (const [name, { self }] of this.#up)
      if (self === crashed) {
        this.#around.world.tell("fault", `${name} is started again`);
        this.start(name);
      }
  }

  apis(): readonly SimApi[] {
    return APIS.flatMap((name) => {
      const parts = this.#up.get(name);
      return parts && !parts.self.isCrashed ? [parts as SimApi] : [];
    });
  }

  find(name: string): Parts | undefined {
    return this.#up.get(name);
  }

  /** Nobody has a connection to the database any more. */
  cutAll(): void {
    for (const { self } of this.#up.values()) self.cut();
  }

  workers(): readonly SimWorker[] {
    return this.#workers.flatMap((name) => {
      const parts = this.#up.get(name);
      return parts && !parts.self.isCrashed ? [parts as SimWorker] : [];
    });
  }

  /** Those that have crashed included. */
  everyWorker(): readonly SimWorker[] {
    return this.#workers.map((name) => this.#up.get(name) as SimWorker);
  }

  /** So that nothing is left under way when the database goes. */
  stopAll(): void {
    for (const { self } of this.#up.values()) if (!self.isCrashed) self.crash();
  }
}
