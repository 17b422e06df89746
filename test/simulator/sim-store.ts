import { createHash } from "node:crypto";
import { BlobMissing, StoreFailed, type BlobStore, type StoredBlob } from "#blobs/store.ts";
import { currentProcess } from "./sim-process.ts";

/** How the store is. `slowMs`: what each request takes, at most. */
export interface StoreMood {
  readonly isDown: boolean;
  readonly slowMs: number;
}

export const STORE_WELL: StoreMood = { isDown: false, slowMs: 0 };

/** Objects in memory, shared by all processes. While it is down, nothing can be put, read or removed. */
export class SimStore implements BlobStore {
  readonly kind = "folder";
  isDown = false;
  slowMs = 0;
  readonly #objects = new Map<string, Buffer>();
  #mark: string | null = null;

  async #check(): Promise<void> {
    const self = currentProcess();
    if (this.slowMs > 0 && self)
      await self.clock.sleep(self.world.chance(`${self.name} store`).between(0, this.slowMs));
    if (this.isDown) throw new StoreFailed("the simulated object store is down", "down");
  }

  async put(key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob> {
    await this.#check();
    const chunks: Uint8Array[] = [];
    for await (const chunk of bytes) chunks.push(chunk);
    await this.#check();
    const whole = Buffer.concat(chunks);
    this.#objects.set(key, whole);
    return { key, sizeBytes: whole.length, sha256: createHash("sha256").update(whole).digest() };
  }

  async *open(
    key: string,
    range?: { readonly start: number; readonly end: number },
  ): AsyncIterable<Uint8Array> {
    await this.#check();
    const whole = this.#objects.get(key);
    if (whole === undefined) throw new BlobMissing(key);
    yield range ? whole.subarray(range.start, range.end + 1) : whole;
  }

  async presign(): Promise<null> {
    return null;
  }

  async readMark(): Promise<string | null> {
    return this.#mark;
  }

  async claim(mark: string): Promise<string> {
    return (this.#mark ??= mark);
  }

  async adopt(mark: string): Promise<void> {
    this.#mark = mark;
  }

  async remove(keys: readonly string[]): Promise<void> {
    // As of a real one, nothing is asked of it then.
    if (keys.length === 0) return;
    await this.#check();
    for (const key of keys) this.#objects.delete(key);
  }

  async removeAll(prefix: string): Promise<void> {
    await this.#check();
    for (const key of this.#objects.keys()) if (key.startsWith(prefix)) this.#objects.delete(key);
  }

  /** The sweep of objects goes by a store's own clock, and is not simulated. */
  async *list(): AsyncIterable<never[]> {}
  async *listUnfinished(): AsyncIterable<string> {}

  async removeUnfinished(): Promise<number> {
    return 0;
  }
}
