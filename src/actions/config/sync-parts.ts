import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { JsonObject } from "#domain/json.ts";
import { readSchedules } from "#domain/schedule-documents.ts";
import { readWebhooks } from "#domain/webhook-documents.ts";
import type { Signing } from "#lib/signing.ts";
import { syncSchedules } from "#actions/schedules/sync-schedules.ts";
import { syncEndpoints } from "#actions/webhooks/sync-endpoints.ts";

/** Creates, replaces and deletes what a document that was just applied has in tables of its own. Throws OperatorError. */
export async function syncParts(
  tx: Database,
  signing: Signing,
  by: { readonly accountId: string; readonly actor: AuditActor },
  { kind, id, document }: { readonly kind: string; readonly id: string; readonly document: JsonObject },
): Promise<void> {
  if (kind === "account") await syncEndpoints(tx, signing, by, readWebhooks(document));
  if (kind === "blueprint") await syncSchedules(tx, signing, { ...by, key: id }, readSchedules(document));
}
