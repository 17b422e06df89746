import { setTimeout as sleep } from "node:timers/promises";
import { admitRuns } from "#db/admission.ts";
import { describeError } from "#lib/log.ts";
import type { Services } from "./services.ts";

/** The first admission is at once; under load each of the next serves all that has come meanwhile. */
const BETWEEN_MS = 10;

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
      for (;;) {
        underway.set(accountId, "once");
        await admitRuns(services.db, accountId);
        if (underway.get(accountId) === "once") break;
        await sleep(BETWEEN_MS);
      }
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
