import type { DataRecord, RecordBatches } from "#domain/record.ts";

/** For each batch of a source, the parts of the readers, in the readers' order. */
export type RecordSplit = AsyncGenerator<readonly (readonly DataRecord[])[]>;

type Reader = (batches: RecordBatches) => Promise<void>;

/**
 * Reads a source once for several concurrent readers. All proceed at the pace of the slowest, so that at most one batch is in
 * memory; a reader that stops early no longer counts. The first failure, of the source or of a reader, ends all of them.
 */
export async function splitRecords(source: RecordSplit, readers: readonly Reader[]): Promise<void> {
  const turns = new Turns(source, readers.length);
  const running = readers.map(async (reader, index) => {
    try {
      await reader(turns.batchesOf(index));
      turns.leave(index);
    } catch (error) {
      turns.fail(error);
      throw error;
    }
  });
  const ended = await Promise.allSettled(running);
  await source.return(undefined);
  if (turns.failure) throw turns.failure.error;
  for (const end of ended) if (end.status === "rejected") throw end.reason;
}

/** The state of one pass: the readers that are still active, and those that wait for the next batch. */
class Turns {
  failure: { readonly error: unknown } | null = null;
  readonly #source: RecordSplit;
  readonly #reading: Set<number>;
  readonly #asking = new Map<
    number,
    {
      readonly resolve: (part: readonly DataRecord[] | null) => void;
      readonly reject: (error: unknown) => void;
    }
  >();
  #advancing = false;

  constructor(source: RecordSplit, readers: number) {
    this.#source = source;
    this.#reading = new Set(Array.from({ length: readers }, (_, index) => index));
  }

  async *batchesOf(reader: number): RecordBatches {
    try {
      for (;;) {
        const part = await this.#next(reader);
        if (part === null) return;
        if (part.length > 0) yield part;
      }
    } finally {
      this.leave(reader);
    }
  }

  leave(reader: number): void {
    this.#reading.delete(reader);
    this.#advance();
  }

  fail(error: unknown): void {
    this.failure ??= { error };
    for (const { reject } of this.#asking.values()) reject(this.failure.error);
    this.#asking.clear();
  }

  #next(reader: number): Promise<readonly DataRecord[] | null> {
    if (this.failure) return Promise.reject(this.failure.error);
    return new Promise((resolve, reject) => {
      this.#asking.set(reader, { resolve, reject });
      this.#advance();
    });
  }

  /** Reads the next batch once every reader waits for it. */
  #advance(): void {
    if (this.#advancing || this.#asking.size === 0 || this.#asking.size < this.#reading.size) return;
    this.#advancing = true;
    this.#source.next().then(
      (step) => {
        this.#advancing = false;
        const asking = [...this.#asking];
        this.#asking.clear();
        for (const [reader, { resolve }] of asking)
          resolve(step.done === true ? null : (step.value[reader] ?? []));
      },
      (error: unknown) => {
        this.#advancing = false;
        this.fail(error);
      },
    );
  }
}
