import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Destination } from "./destination.ts";
import type { EngineServices } from "#engine/services.ts";

/**
 * Reads the sealed value and records its opening in the same transaction. The record is committed before the value is opened; without
 * it nothing is opened (docs/decisions/0023).
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
 * Called before every hop of a request, so that its receiver is recorded before it receives anything. Throws if the hop is not
 * allowed. `isFirst`: not a redirect.
 */
export type BeforeHop = (hop: URL, isFirst: boolean) => Promise<void>;

interface CredentialUse {
  readonly accountId: string;
  readonly credentialId: string;
  readonly runId: string;
}

/**
 * Allows requests only to the credential's origins, and records each origin that a run contacts with it: one entry per origin,
 * committed before the first request is sent. Without the entry there is no request (docs/decisions/0023). A run that continues in
 * another process writes new entries.
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
