import { recordAudit } from "#db/audit-entries.ts";
import { readClockText } from "#db/connection/clock.ts";
import type { Database } from "#db/connection/pool.ts";
import { insertEvent } from "#db/webhooks/account-events.ts";
import type { AuditActor } from "#domain/audit.ts";
import { exampleEvent, TRIGGERED_TYPES } from "#domain/webhook-example.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError, requireAccount } from "#actions/operator-error.ts";

/**
 * Sends a made-up event to the account's endpoints that subscribe to its type, and to the streams of its events. Its objects do not exist.
 * Returns the event's id. Throws OperatorError.
 */
export async function triggerEvent(
  { db, signing }: { readonly db: Database; readonly signing: Signing },
  { account, type }: { readonly account: string; readonly type: string },
  actor: AuditActor = { kind: "cli" },
): Promise<string> {
  const known = TRIGGERED_TYPES.find((each) => each === type);
  if (known === undefined)
    throw new OperatorError(
      `There is no event ${JSON.stringify(type)} that could be made up: ${TRIGGERED_TYPES.join(", ")}.`,
    );
  const { id: accountId } = await requireAccount(db, account);
  return await db.transaction(async (tx) => {
    const { subjectId, data } = exampleEvent(known, await readClockText(tx));
    const eventId = await insertEvent(tx, { accountId, type, subjectId, data });
    if (eventId === null)
      throw new OperatorError(
        `No enabled endpoint of account "${account}" subscribes to ${type}, and nobody listens to its events.`,
      );
    await recordAudit(tx, signing.audit, {
      accountId,
      actor,
      action: "webhook.trigger",
      subjectId: accountId,
      detail: { event: eventId, type },
    });
    return eventId;
  });
}
