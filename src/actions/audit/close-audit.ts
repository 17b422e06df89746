import {
  chainEntries,
  listOpenChains,
  listOpenEntries,
  lockChain,
  type OpenEntry,
} from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { entryBytes, hashEntry, placeBytes } from "#domain/audit.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Log } from "#lib/log.ts";

const BATCH = 500;

interface ClosingServices {
  readonly db: Database;
  readonly audit: AuditKeys;
  readonly log: Log;
}

/** Reported once per process. */
const reportedForged = new Set<string>();

/**
 * Chains the entries committed since the last call, and returns how many. Entries become visible in the order of their commits, not of
 * their creation: a late one simply gets a later number.
 */
export async function closeAudit(services: ClosingServices): Promise<number> {
  let closed = 0;
  for (const chain of await listOpenChains(services.db)) {
    let afterId: string | null = "";
    while (afterId !== null) {
      const batch: Batch = await closeBatch(services, chain, afterId);
      closed += batch.closed;
      afterId = batch.lastId;
    }
  }
  return closed;
}

interface Batch {
  readonly closed: number;
  /** null: nothing is left, or another process is closing this chain. */
  readonly lastId: string | null;
}

async function closeBatch(services: ClosingServices, chain: string, afterId: string): Promise<Batch> {
  const { db, audit } = services;
  return await db.transaction(async (tx) => {
    const end = await lockChain(tx, chain);
    if (!end) return { closed: 0, lastId: null };
    await failpoint("audit.before_close");
    const entries = await listOpenEntries(tx, chain, afterId, BATCH);
    const genuine = entries.filter((entry) => isGenuine(services, entry));
    let { count, head } = end;
    const placed = genuine.map((entry) => {
      const sequence = ++count;
      head = hashEntry(head, sequence, entry);
      return { id: entry.id, sequence, hash: head, signature: audit.sign(placeBytes(chain, sequence, head)) };
    });
    if (placed.length > 0) await chainEntries(tx, { chain, count, head }, placed);
    await failpoint("audit.after_close");
    const isLast = entries.length < BATCH;
    return { closed: placed.length, lastId: isLast ? null : must(entries.at(-1), "a last entry").id };
  });
}

/** A row that none of our processes wrote, or that was changed before it was chained, is never chained. */
function isGenuine({ audit, log }: ClosingServices, entry: OpenEntry): boolean {
  if (audit.isSealed(entryBytes(entry), entry.seal)) return true;
  if (!reportedForged.has(entry.id)) {
    reportedForged.add(entry.id);
    log.error(
      { alarm: "audit_forged", entryId: entry.id, chain: entry.chain },
      "an audit entry was forged or changed in the database; run `latchkey audit verify`",
    );
  }
  return false;
}
