import { AuditCheckpoints } from "#actions/audit/checkpoint-audit.ts";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { listUnusualOpenings } from "#db/audit-entries.ts";
import { checkSignedRows } from "#db/signing/check-signed-rows.ts";
import { limits } from "#domain/limits.ts";
import type { EngineServices } from "#engine/services.ts";
import type { AppendLog } from "#lib/append-log.ts";
import { describeError } from "#lib/log.ts";

export interface AuditKeeper {
  /** Closes the chains and writes a last checkpoint. */
  stop(): Promise<void>;
}

/** Closes the audit chains each second, writes a checkpoint each minute, and looks for unusual openings and rows that don't verify. */
export function startAuditKeeper(
  services: Pick<EngineServices, "db" | "audit" | "log">,
  sink: AppendLog,
): AuditKeeper {
  const checkpoints = new AuditCheckpoints(services, sink);
  // docs/decisions/0023: a full or missing sink raises an alarm, and the service continues; the next checkpoint has everything.
  const checkpoint = async (): Promise<void> => {
    await attempt(services, "audit_checkpoint", async () => await checkpoints.write());
    await attempt(services, "credential_openings", async () => await watchOpenings(services));
    // Includes rows that are not in use yet: a planted operator has not signed in.
    await attempt(services, "row_check", async () => await checkSignedRows(services.db, { versions: false }));
  };
  const close = async (): Promise<void> =>
    await attempt(services, "audit_close", async () => await closeAudit(services));
  const tasks = [every(limits.auditCloseMs, close), every(limits.auditCheckpointMs, checkpoint)];
  return {
    stop: async () => {
      await Promise.all(tasks.map(async (task) => await task.stop()));
      await close();
      await checkpoint();
    },
  };
}

/** docs/decisions/0023: many more openings than usual may mean that someone is emptying the vault. */
async function watchOpenings({ db, log }: Pick<EngineServices, "db" | "log">): Promise<void> {
  for (const unusual of await listUnusualOpenings(db, limits.unusualOpenings)) {
    log.warn(
      { alarm: "credential_openings", ...unusual },
      "an account's credentials are opened far more often than in the hour before",
    );
  }
}

async function attempt(
  { log }: Pick<EngineServices, "log">,
  alarm: string,
  task: () => Promise<unknown>,
): Promise<void> {
  try {
    await task();
  } catch (error) {
    log.error({ alarm, ...describeError(error) }, "the upkeep of the audit log failed; retrying");
  }
}

function every(ms: number, task: () => Promise<void>): { stop(): Promise<void> } {
  let inProgress: Promise<void> | null = null;
  const timer = setInterval(() => {
    inProgress ??= task().finally(() => {
      inProgress = null;
    });
  }, ms);
  return {
    stop: async () => {
      clearInterval(timer);
      await inProgress;
    },
  };
}
