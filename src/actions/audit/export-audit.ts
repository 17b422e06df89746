import { findChainEnd, listChained, listChains } from "#db/audit-entries.ts";
import { listDetached } from "#db/audit-months.ts";
import type { Database } from "#db/connection/pool.ts";
import { GENESIS, type ChainedEntry } from "#domain/audit.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { requireAccount } from "#actions/operator-error.ts";

/** A line of an export. It can be verified offline with the preceding lines, or with `previous` alone (docs/audit.md). */
export type ExportLine = Readonly<Record<string, string | number | null>>;

const BATCH = 1_000;

/**
 * Exports the chained entries of an account, or of all chains, each chain after a header line. `isGrowing`: read outside a snapshot;
 * entries chained in the meantime are omitted, so that a chain ends as its header says.
 */
export async function* exportAudit(
  db: Database,
  keys: AuditKeys,
  request: { readonly account: string | null; readonly since: string | null },
  { isGrowing = false }: { readonly isGrowing?: boolean } = {},
): AsyncGenerator<ExportLine> {
  const chains =
    request.account === null
      ? await listChains(db)
      : [{ chain: (await requireAccount(db, request.account)).id, account: request.account }];
  for (const { chain, account } of chains) {
    const end = await findChainEnd(db, chain);
    const head = (end?.head ?? GENESIS).toString("hex");
    yield {
      format: "latchkey.audit.v1",
      chain,
      account,
      public_key: keys.publicKey,
      count: end?.count ?? 0,
      head,
    };
    yield* exportChain(db, chain, request.since, isGrowing ? (end?.count ?? 0) : Infinity);
  }
}

async function* exportChain(
  db: Database,
  chain: string,
  since: string | null,
  lastSequence: number,
): AsyncGenerator<ExportLine> {
  const left = (await listDetached(db, chain)).at(-1);
  let after = { sequence: (left?.last ?? 0) + 1, id: "" };
  let previous: Uint8Array = left === undefined ? GENESIS : Buffer.from(left.head, "hex");
  for (;;) {
    const entries = await listChained(db, chain, after, BATCH);
    for (const entry of entries) {
      if (entry.sequence > lastSequence) return;
      if (since === null || entry.occurredAt >= since) yield lineOf(entry, previous);
      previous = entry.hash;
    }
    const last = entries.at(-1);
    if (!last || entries.length < BATCH) return;
    after = last;
  }
}

export function lineOf(entry: ChainedEntry, previous: Uint8Array): ExportLine {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  return {
    chain: entry.chain,
    sequence: entry.sequence,
    id: entry.id,
    occurred_at: entry.occurredAt,
    actor_kind: entry.actorKind,
    actor_id: entry.actorId,
    action: entry.action,
    subject_id: entry.subjectId,
    run_id: entry.runId,
    detail: entry.detail,
    previous: hex(previous),
    hash: hex(entry.hash),
    signature: Buffer.from(entry.signature).toString("base64url"),
  };
}
