import { tallyLine, type NodeTally } from "#domain/node-tally.ts";
import type { DataRecord } from "#domain/record.ts";
import type { Clock } from "#lib/clock.ts";

/** A node that gives records, until `end`. */
interface OpenTally {
  /** `done` once its records were read to their end. */
  state: NodeTally["state"];
  count(batch: readonly DataRecord[]): void;
  end(): void;
}

/**
 * What the nodes without effects do in one claim of a run. It costs no statement: the next journal row, or the row that ends the
 * run, stores it. After a crash they are executed again, and counted again, unless such a row exists.
 */
export class Tallies {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #lines = "";

  /** `claimedAtMs`: the database's time now, in milliseconds since 1970. */
  constructor(clock: Clock, claimedAtMs: number) {
    this.#clock = clock;
    this.#startedAtMs = claimedAtMs - clock.now();
  }

  #now(): number {
    return Math.round(this.#startedAtMs + this.#clock.now());
  }

  #note(tally: Omit<NodeTally, "toMs">): void {
    this.#lines += tallyLine({ ...tally, toMs: this.#now() });
  }

  skip(node: string): void {
    this.#note({ node, state: "skipped", fromMs: this.#now(), total: null, valid: null });
  }

  /** Begins a node; the function that it returns notes its end. */
  open(node: string): (state: NodeTally["state"], total: number | null, valid: number | null) => void {
    const fromMs = this.#now();
    return (state, total, valid) => this.#note({ node, state, fromMs, total, valid });
  }

  /** For a node that gives no stream. `countAll`: its records, when it has ended. */
  async time<T>(
    node: string,
    execute: () => Promise<T>,
    countAll: () => number | null = () => null,
  ): Promise<T> {
    const end = this.open(node);
    let state: NodeTally["state"] = "stopped";
    try {
      const output = await execute();
      state = "done";
      return output;
    } finally {
      end(state, state === "done" ? countAll() : null, null);
    }
  }

  /** For a node that gives records: counts them while they are read. */
  begin(node: string): OpenTally {
    const end = this.open(node);
    let [total, valid] = [0, 0];
    const tally: OpenTally = {
      state: "stopped",
      count: (batch) => {
        total += batch.length;
        for (const { isValid } of batch) if (isValid) valid++;
      },
      end: () => end(tally.state, total, valid),
    };
    return tally;
  }

  /** Everything since the last call, for a row of the journal; null: nothing. */
  take(): Buffer | null {
    const lines = this.#lines;
    this.#lines = "";
    return lines === "" ? null : Buffer.from(lines, "utf8");
  }
}
