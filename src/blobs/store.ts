/** A stored object: its size and what its bytes hash to. */
export interface StoredBlob {
  readonly key: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
}

/** An object as a listing shows it. */
export interface ListedBlob {
  readonly key: string;
  /** By the store's clock. */
  readonly modifiedAt: Date;
}

/** Where large things are kept: inputs, record sets, results. Keys are made by the server, never by a caller. */
export interface BlobStore {
  /** Stores the stream whole and durably, or nothing. */
  put(key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob>;
  /** The object's bytes, or those from `start` to `end` (inclusive). Throws BlobMissing. */
  open(key: string, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /** Removes objects; one that is not there is no error. */
  remove(keys: readonly string[]): Promise<void>;
  /** Removes every object whose key begins with `prefix` (which ends in `/`), half-written ones too. */
  removeAll(prefix: string): Promise<void>;
  /** The objects whose key begins with `prefix` (which ends in `/`), page by page, in no particular order. */
  list(prefix: string, pageSize: number): AsyncIterable<readonly ListedBlob[]>;
  /** Names of what is left of objects that were never finished, untouched since `before`. */
  listUnfinished(before: Date): AsyncIterable<string>;
  /** Removes what is left of objects that were never finished, untouched since `before`. Gives how many. */
  removeUnfinished(before: Date): Promise<number>;
}

export class BlobMissing extends Error {
  override readonly name = "BlobMissing";

  constructor(key: string) {
    super(`object ${key} is not in the store`);
  }
}
