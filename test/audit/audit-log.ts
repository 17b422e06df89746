import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditEvent } from "#domain/audit.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { openLog } from "#lib/log.ts";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

/** A database with accounts, and the keys that its audit log is written with. */
export interface AuditLog extends TestDatabase {
  readonly keys: AuditKeys;
  /** What closers and checkpoints want; on another pool if given one. */
  services(db?: Database): { db: Database; audit: AuditKeys; log: ReturnType<typeof openLog> };
}

export async function openAuditLog(...accounts: readonly string[]): Promise<AuditLog> {
  const database = await createTestDatabase();
  for (const id of accounts) {
    await database.db.query(
      `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency)
       values ($1, $1, '{}', $1, '{}', 1, 1, 1)`,
      [id],
    );
  }
  const keys = openSigning(readSigningKey(generateSigningKey())).audit;
  const log = openLog({ level: "silent", format: "json" });
  return { ...database, keys, services: (db = database.db) => ({ db, audit: keys, log }) };
}

export function eventOf(accountId: string | null, index: number): AuditEvent {
  return {
    accountId,
    actor: { kind: "run", id: `run_${index}` },
    action: "credential.open",
    subjectId: `cred_${index % 7}`,
    runId: `run_${index}`,
    detail: { what: "credential", index },
  };
}

export async function writeEntries(log: AuditLog, accountId: string | null, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await recordAudit(log.db, log.keys, eventOf(accountId, index));
}

class RolledBack extends Error {}

/** What a superuser can do, undone afterwards: `work` runs in a transaction without triggers, which is rolled back. */
export async function asSuperuser<T>(log: AuditLog, work: (tx: Database) => Promise<T>): Promise<T> {
  let result: { value: T } | null = null;
  await log.db
    .transaction(async (tx) => {
      await tx.query("set local session_replication_role = replica");
      result = { value: await work(tx) };
      throw new RolledBack();
    })
    .catch((error: unknown) => {
      if (!(error instanceof RolledBack)) throw error;
    });
  if (!result) throw new Error("the work gave nothing");
  return (result as { value: T }).value;
}
