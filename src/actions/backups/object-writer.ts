import type { BlobStore } from "#blobs/store.ts";

/** Objects up to this size are held while they are stored, and the next ones are read meanwhile. */
const SMALL_BYTES_MAX = 262_144;
/** Storing a small object is mostly waiting, for the disk or the store. */
const AT_ONCE_MAX = 16;

/** Stores objects, small ones several at once. */
export class ObjectWriter implements AsyncDisposable {
  readonly #blobs: Pick<BlobStore, "put">;
  /** Those that failed stay in it, so that they are noticed. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(blobs: Pick<BlobStore, "put">) {
    this.#blobs = blobs;
  }

  /** Reads the object to its end; it is stored when `settle` returns. Throws what storing an earlier one threw. */
  async put(key: string, body: AsyncIterable<Uint8Array>): Promise<void> {
    const source = body[Symbol.asyncIterator]();
    const begun: Uint8Array[] = [];
    for (let bytes = 0; bytes <= SMALL_BYTES_MAX;) {
      const next = await source.next();
      if (next.done === true) return await this.#begin(key, begun);
      begun.push(next.value);
      bytes += next.value.byteLength;
    }
    await this.#blobs.put(key, inTurn(begun, source));
  }

  async #begin(key: string, pieces: readonly Uint8Array[]): Promise<void> {
    while (this.#underWay.size >= AT_ONCE_MAX) await Promise.race(this.#underWay);
    const stored: Promise<unknown> = this.#blobs
      .put(key, inTurn(pieces))
      .then(() => this.#underWay.delete(stored));
    stored.catch(() => {});
    this.#underWay.add(stored);
  }

  /** Waits until all are stored. Throws what storing one threw. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}

async function* inTurn(
  pieces: readonly Uint8Array[],
  rest?: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* pieces;
  for (let next = await rest?.next(); next?.done === false; next = await rest?.next()) yield next.value;
}
