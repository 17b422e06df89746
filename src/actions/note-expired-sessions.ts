import { recordAudit } from "#db/audit-entries.ts";
import { noteExpiredSessions } from "#db/credential-sessions.ts";
import type { Database } from "#db/pool.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";

const BATCH = 200;

/** Part of the worker's housekeeping: each session that has expired unused is on record once. Nothing is correct or wrong by it. */
export async function noteExpired(services: {
  readonly db: Database;
  readonly audit: AuditKeys;
}): Promise<void> {
  for (let noted = BATCH; noted === BATCH;) {
    noted = await services.db.transaction(async (tx) => {
      const expired = await noteExpiredSessions(tx, BATCH);
      for (const { id, accountId, strategyId } of expired) {
        await recordAudit(tx, services.audit, {
          accountId,
          actor: { kind: "service" },
          action: "session.expire",
          subjectId: id,
          detail: { strategy: strategyId },
        });
      }
      return expired.length;
    });
  }
}
