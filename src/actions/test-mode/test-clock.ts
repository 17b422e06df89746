import { recordAudit } from "#db/audit-entries.ts";
import { clockText } from "#db/connection/clock.ts";
import { lockTestClock, moveTestClock, readAccountClock } from "#db/test-clock.ts";
import { limits } from "#domain/limits.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import { authorizeAccount } from "#actions/keys/authenticate.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** The time by the clock of a caller's test account. Throws Problem 403. */
export async function readTestClock({ db }: Needs<"db">, caller: Caller): Promise<string> {
  requireTestMode(caller);
  return clockText(await readAccountClock(db, caller.account.id));
}

/**
 * Moves the clock of a caller's test account forward to a time, with every deadline of its rows. A time that has passed changes nothing, so
 * that the same request may be sent again. Throws Problem 403, 422.
 */
export async function putTestClock(
  { db, signing }: Needs<"db" | "signing">,
  caller: Caller,
  toMs: number,
): Promise<string> {
  requireTestMode(caller);
  const { id: accountId } = caller.account;
  return await db.transaction(async (tx) => {
    const nowMs = await lockTestClock(tx, accountId);
    const byMs = Math.ceil(toMs - nowMs);
    if (byMs > limits.testClockMoveMsMax)
      throw invalidField("now", "`now` must be at most 400 days after the test clock's time.");
    if (byMs <= 0) return clockText(nowMs);
    await moveTestClock(tx, accountId, byMs);
    await recordAudit(tx, signing.audit, {
      accountId,
      actor: { kind: "api_key", id: caller.keyId },
      action: "test_clock.move",
      subjectId: accountId,
      detail: { by_ms: byMs },
    });
    return clockText(nowMs + byMs);
  });
}

function requireTestMode(caller: Caller): void {
  if (!caller.account.isTest)
    throw new Problem(
      "authorization_error",
      "Only test mode has a clock that can be moved. Use a key of test mode: latchkey keys create --test.",
    );
  authorizeAccount(caller);
}
