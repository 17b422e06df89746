import { recordAudit } from "#db/audit-entries.ts";
import type { EngineServices } from "./services.ts";

/** Told of every hop of a request before it is made, so that its receiver is on record before it receives anything. */
export type BeforeHop = (hop: URL) => Promise<void>;

/**
 * Records which origins a run contacts with a credential: one entry for each, committed before the first request to it
 * leaves. Without the entry there is no request (design, page 6, item 14). A run that goes on in another process writes
 * its own.
 */
export function recordReceivers(
  services: EngineServices,
  use: { readonly accountId: string; readonly credentialId: string; readonly runId: string },
): BeforeHop {
  const recorded = new Map<string, Promise<unknown>>();
  return async ({ origin }) => {
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
