import { ExplainedError } from "#lib/explained-error.ts";
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

/** How a client that follows a presigned URL gets the object. */
export interface PresignedDownload {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly cacheControl: string;
  /** When its time begins, by the database's clock. */
  readonly fromMs: number;
  readonly lifetimeMs: number;
}

/** Where large things are kept: inputs, record sets, results. Keys are made by the server, never by a caller. */
export interface BlobStore {
  /** Where it keeps them. */
  readonly kind: "folder" | "s3";
  /** Stores the stream whole and durably, or nothing. */
  put(key: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob>;
  /** The object's bytes, or those from `start` to `end` (inclusive). Throws BlobMissing. */
  open(key: string, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /**
   * A URL of the store's own that gives the object, and ranges of it, to anyone who has it. Null: the store has none, or can't promise
   * it for that long; the service sends the object itself then.
   */
  presign(key: string, download: PresignedDownload): Promise<string | null>;
  /** The mark that says whose objects these are; null: nobody has claimed the store. */
  readMark(): Promise<string | null>;
  /** Writes the mark where there is none, once for all processes that try; gives the one that is there. */
  claim(mark: string): Promise<string>;
  /** Replaces the mark. */
  adopt(mark: string): Promise<void>;
  /** Removes objects; one that is not there is no error. */
  remove(keys: readonly string[]): Promise<void>;
  /** Removes every object whose key begins with `prefix` (which ends in `/`), half-written ones too. */
  removeAll(prefix: string): Promise<void>;
  /**
   * The objects whose key begins with `prefix` (which ends in `/`) and comes after `after`, page by page, in the order of the keys' bytes:
   * a listing that was cut off goes on after the last key it gave.
   */
  list(prefix: string, pageSize: number, after?: string): AsyncIterable<readonly ListedBlob[]>;
  /** Names of what is left of objects that were never finished, untouched since `before`, if `isOurs` says so of their key. */
  listUnfinished(before: Date, isOurs: (key: string) => boolean): AsyncIterable<string>;
  /** Removes what `listUnfinished` names. Gives how many. */
  removeUnfinished(before: Date, isOurs: (key: string) => boolean): Promise<number>;
}

export class BlobMissing extends Error {
  override readonly name = "BlobMissing";

  constructor(key: string) {
    super(`object ${key} is not in the store`);
  }
}

/**
 * The store could not do what was asked, and nothing was lost: it can be asked again when it is well. The message is for the
 * operator: it names the fault and the remedy, and holds nothing of the objects and no secret.
 */
export class StoreFailed extends ExplainedError {
  /** `store.` and what the store or the system calls it; never a code that a database's driver has, too. */
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = `store.${code}`;
  }
}

/** What a disk says that is full, or can't be written to at present. */
const DISK_CODES = new Set(["ENOSPC", "EDQUOT", "EROFS", "EIO"]);

/** A disk's own failure as the store's: what was to be written can be written when it is well. Every other error is given back. */
export function diskFailure(folder: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined || !DISK_CODES.has(code)) return error;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const what = isFull ? "is full: make room there" : "can't be written to: look after it";
  return new StoreFailed(`the disk of ${folder} ${what} (${code})`, code);
}

/** The name of the mark, beside the objects. No object has it: theirs have two parts or more. */
export const MARK_NAME = "latchkey-installation";

/** Keys and prefixes are made by the server: two parts or more, and nothing that leads elsewhere. */
const KEY = /^[0-9A-Za-z_-]+(\/[0-9A-Za-z_.-]+)+$/;

export const isObjectKey = (key: string): boolean => KEY.test(key) && !key.includes("..");

export const isObjectPrefix = (prefix: string): boolean => /^([0-9A-Za-z_-]+\/)+$/.test(prefix);
