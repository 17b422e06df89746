import { createHash } from "node:crypto";
import type { AuditAction } from "./audit-actions.ts";

/** `id`: the API key, the hosted session that the end user came with, the run, the operator. The shell has none. */
export type AuditActor =
  | { readonly kind: "api_key" | "end_user" | "run" | "operator"; readonly id: string }
  | { readonly kind: "cli" | "service" };

/** What a caller of `recordAudit` says. */
export interface AuditEvent {
  /** null: of the installation itself. */
  readonly accountId: string | null;
  readonly actor: AuditActor;
  readonly action: AuditAction;
  /** The id of what it was done to. */
  readonly subjectId: string;
  readonly runId?: string;
  /** Names, counts, ids. Never a secret, never what a caller or an end user gave. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null>>;
}

/** An entry as it is stored; every member is hashed. */
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

/** An entry in its place. */
export interface ChainedEntry extends AuditEntry {
  readonly seal: Uint8Array;
  readonly sequence: number;
  readonly hash: Uint8Array;
  readonly signature: Uint8Array;
}

/** Where a chain was seen to end. */
export interface AuditCheckpoint {
  readonly chain: string;
  readonly count: number;
  /** Hex. */
  readonly head: string;
  readonly at: string;
}

export const INSTALLATION_CHAIN = "installation";

/** What the first entry of a chain follows. */
export const GENESIS = Buffer.alloc(32);

/** docs/decisions/0023; docs/audit.md describes these bytes, and a test follows that page alone. */
export function entryBytes(entry: AuditEntry): Buffer {
  return frame(["latchkey.audit.entry.v1", ...fieldsOf(entry)]);
}

/** The hash of an entry in its place: it covers the hash before it, its number and all of its content. */
export function hashEntry(previous: Uint8Array, sequence: number, entry: AuditEntry): Buffer {
  return createHash("sha256")
    .update(frame(["latchkey.audit.chain.v1", previous, String(sequence), ...fieldsOf(entry)]))
    .digest();
}

/** What an entry's signature is made over. */
export function placeBytes(chain: string, sequence: number, hash: Uint8Array): Buffer {
  return frame(["latchkey.audit.place.v1", chain, String(sequence), hash]);
}

/** What a checkpoint's signature is made over. */
export function checkpointBytes({ chain, count, head, at }: AuditCheckpoint): Buffer {
  return frame(["latchkey.audit.checkpoint.v1", chain, String(count), head, at]);
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

/** Every part with its length before it (four bytes, big-endian): no two lists have the same bytes. */
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
