import { admitRuns } from "#db/admission.ts";
import { describeError } from "#lib/log.ts";
import type { Services } from "./services.ts";

// One admission at a time for each account in a process; what comes meanwhile is served by one more.
const underway = new Map<string, "once" | "again">();

/**
 * Admits the account's waiting runs soon after a trigger's COMMIT or a run's end. Nobody waits for it, and correctness does
 * not depend on it: the worker's reconciler admits whatever a lost process left waiting.
 */
export function admitSoon(services: Pick<Services, "db" | "log">, accountId: string): void {
  if (underway.has(accountId)) {
    underway.set(accountId, "again");
    return;
  }
  underway.set(accountId, "once");
  void (async () => {
    try {
      do {
        underway.set(accountId, "once");
        await admitRuns(services.db, accountId);
      } while (underway.get(accountId) === "again");
    } catch (error) {
      services.log.warn(
        { accountId, ...describeError(error) },
        "admitting runs failed; the reconciler will do it",
      );
    } finally {
      underway.delete(accountId);
    }
  })();
}
