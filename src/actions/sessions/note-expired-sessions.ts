import { recordAudit } from "#db/audit-entries.ts";
import { noteExpiredSessions } from "#db/credentials/credential-sessions.ts";
import { noteExpiredFlows } from "#db/credentials/embedded-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditEvent } from "#domain/audit.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { expireProposals } from "#actions/config/create-proposal.ts";

const BATCH = 200;

type Expiry = Omit<AuditEvent, "actor">;

/**
 * Part of the worker's housekeeping: records in the audit log, once, each hosted or embedded session that has expired unused, and
 * each expired proposal. Nothing else depends on it.
 */
export async function noteExpired(services: {
  readonly db: Database;
  readonly audit: AuditKeys;
}): Promise<void> {
  await noteAll(services, async (tx) =>
    (await noteExpiredSessions(tx, BATCH)).map(({ id, accountId, strategyId }) => ({
      accountId,
      action: "session.expire",
      subjectId: id,
      detail: { strategy: strategyId },
    })),
  );
  await expireProposals(services);
  await noteAll(services, async (tx) =>
    (await noteExpiredFlows(tx, BATCH)).map(({ id, accountId, origin, blueprints }) => ({
      accountId,
      action: "embedded_session.expire",
      subjectId: id,
      detail: { origin, blueprints },
    })),
  );
}

/** One transaction per batch, until a batch is not full. */
async function noteAll(
  { db, audit }: { readonly db: Database; readonly audit: AuditKeys },
  noteSome: (tx: Database) => Promise<readonly Expiry[]>,
): Promise<void> {
  for (let noted = BATCH; noted === BATCH;) {
    noted = await db.transaction(async (tx) => {
      const expired = await noteSome(tx);
      for (const expiry of expired) await recordAudit(tx, audit, { ...expiry, actor: { kind: "service" } });
      return expired.length;
    });
  }
}
