import { createHash } from "node:crypto";
import type { AuditAction } from "./audit-actions.ts";
import type { DetachedSlice } from "./audit-month.ts";

/** `id`: that of the API key, the end user's hosted session, the run, the operator or the operator token. The command line has none. */
export type AuditActor =
  | { readonly kind: "api_key" | "end_user" | "run" | "operator" | "operator_token"; readonly id: string }
  | { readonly kind: "cli" | "service" };

/** The arguments of `recordAudit`. */
export interface AuditEvent {
  /** null: the event belongs to the installation itself. */
  readonly accountId: string | null;
  readonly actor: AuditActor;
  readonly action: AuditAction;
  /** The id of the object of the action. */
  readonly subjectId: string;
  readonly runId?: string;
  /** Names, counts, ids. Never a secret, never a value from a caller or an end user. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>;
}

/** An entry as stored; every member is hashed. */
export interface AuditEntry {
  /** The account's id, or `installation`. */
  readonly chain: string;
  readonly id: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly occurredAt: string;
  readonly actorKind: string;
  readonly actorId: string | null;
  readonly action: string;
  readonly subjectId: string;
  readonly runId: string | null;
  /** JSON text. */
  readonly detail: string;
}

/** An entry at its position in the chain. */
export interface ChainedEntry extends AuditEntry {
  readonly seal: Uint8Array;
  readonly sequence: number;
  readonly hash: Uint8Array;
  readonly signature: Uint8Array;
}

/** The last recorded end of a chain. */
export interface AuditCheckpoint {
  readonly chain: string;
  readonly count: number;
  /** Hex. */
  readonly head: string;
  readonly at: string;
}

export const INSTALLATION_CHAIN = "installation";

/** The predecessor hash of a chain's first entry. */
export const GENESIS = Buffer.alloc(32);

/** docs/decisions/0023; docs/audit.md describes these bytes, and a test is based only on that page. */
export function entryBytes(entry: AuditEntry): Buffer {
  return frame(["latchkey.audit.entry.v1", ...fieldsOf(entry)]);
}

/** The hash of an entry in its chain: it covers the preceding hash, its number and all of its content. */
export function hashEntry(previous: Uint8Array, sequence: number, entry: AuditEntry): Buffer {
  return createHash("sha256")
    .update(frame(["latchkey.audit.chain.v1", previous, String(sequence), ...fieldsOf(entry)]))
    .digest();
}

/** The signed bytes of an entry. */
export function placeBytes(chain: string, sequence: number, hash: Uint8Array): Buffer {
  return frame(["latchkey.audit.place.v1", chain, String(sequence), hash]);
}

/** The signed bytes of a checkpoint. */
export function checkpointBytes({ chain, count, head, at }: AuditCheckpoint): Buffer {
  return frame(["latchkey.audit.checkpoint.v1", chain, String(count), head, at]);
}

/** The signed bytes of an exported month. `sha256`: of all lines before the one with the signature. */
export function monthBytes(month: string, sha256: Uint8Array): Buffer {
  return frame(["latchkey.audit.month.v1", month, sha256]);
}

/** The signed bytes of what is left of a month. Other words than in its file, so that nobody can remove entries with the file alone. */
export function detachedBytes(slice: DetachedSlice): Buffer {
  const { month, chain, first, last, previous, head, kept, keptSha256, fileSha256 } = slice;
  const numbers = [first, last, kept].map(String);
  const hashes = [previous, head, keptSha256, fileSha256].map((hex) => Buffer.from(hex, "hex"));
  return frame(["latchkey.audit.detached.v1", month, chain, ...numbers, ...hashes]);
}

/** Summarizes the entries of a detached month that stay in the database, in the order of their numbers. */
export class KeptEntries {
  readonly #hash = createHash("sha256");
  count = 0;

  add({ sequence, hash }: Pick<ChainedEntry, "sequence" | "hash">): void {
    this.count++;
    this.#hash.update(frame(["latchkey.audit.kept.v1", String(sequence), hash]));
  }

  /** Hexadecimal. The last call. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}

function fieldsOf(entry: AuditEntry): readonly string[] {
  return [
    entry.chain,
    entry.id,
    entry.occurredAt,
    entry.actorKind,
    entry.actorId ?? "",
    entry.action,
    entry.subjectId,
    entry.runId ?? "",
    entry.detail,
  ];
}

/** Every part, preceded by its length (four bytes, big-endian): no two lists have the same bytes. */
function frame(parts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = typeof part === "string" ? Buffer.from(part, "utf8") : part;
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
