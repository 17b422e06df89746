import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Destination } from "./destination.ts";
import type { EngineServices } from "#engine/services.ts";

/**
 * Reads what is about to be opened, and records the opening in the same transaction: it is committed before anything is
 * opened, and what is not recorded is not opened (docs/decisions/0023).
 */
export async function recordOpening<T>(
  services: EngineServices,
  use: {
    readonly accountId: string;
    readonly credentialId: string;
    readonly strategyId: string;
    readonly runId: string;
  },
  what: "credential" | "cached_login" | "oauth_tokens",
  read: (tx: Database) => Promise<T | undefined>,
): Promise<T | undefined> {
  return await services.db.transaction(async (tx) => {
    const found = await read(tx);
    if (found === undefined) return undefined;
    await recordAudit(tx, services.audit, {
      accountId: use.accountId,
      actor: { kind: "run", id: use.runId },
      action: "credential.open",
      subjectId: use.credentialId,
      runId: use.runId,
      detail: { what, strategy: use.strategyId },
    });
    return found;
  });
}

/**
 * Told of every hop of a request before it is made, so that its receiver is on record before it receives anything. Throws for one
 * that must not be made. `isFirst`: no redirect has led there.
 */
export type BeforeHop = (hop: URL, isFirst: boolean) => Promise<void>;

interface CredentialUse {
  readonly accountId: string;
  readonly credentialId: string;
  readonly runId: string;
}

/**
 * Lets a request leave for where its credential may go, and nowhere else, and records which origins a run contacts with it: one entry
 * for each, committed before the first request to it leaves. Without the entry there is no request (docs/decisions/0023). A run
 * that goes on in another process writes its own.
 */
export function guardReceivers(
  services: EngineServices,
  use: CredentialUse,
  destination: Destination,
): BeforeHop {
  const recorded = new Map<string, Promise<unknown>>();
  return async (hop, isFirst) => {
    destination.admit(hop, isFirst);
    const { origin } = hop;
    const entry =
      recorded.get(origin) ??
      recordAudit(services.db, services.audit, {
        accountId: use.accountId,
        actor: { kind: "run", id: use.runId },
        action: "credential.send",
        subjectId: use.credentialId,
        runId: use.runId,
        detail: { origin },
      });
    recorded.set(origin, entry);
    try {
      await entry;
    } catch (error) {
      recorded.delete(origin);
      throw error;
    }
  };
}
