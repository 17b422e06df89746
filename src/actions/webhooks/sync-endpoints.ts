import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  adoptWebhookEndpoint,
  countWebhookEndpoints,
  dropWebhookEndpoint,
  insertWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from "#db/webhooks/webhook-endpoints.ts";
import type { AuditActor, AuditEvent } from "#domain/audit.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import type { DocumentEndpoint } from "#domain/webhook-documents.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";

/**
 * Makes the endpoints of an account those of its document, by their URL. One that was created otherwise is taken over, with its secret; a new
 * one has none, and gets nothing until somebody fetches one. Those that the document no longer has are deleted. Throws OperatorError.
 */
export async function syncEndpoints(
  tx: Database,
  signing: Signing,
  { accountId, actor }: { readonly accountId: string; readonly actor: AuditActor },
  wanted: readonly DocumentEndpoint[],
): Promise<void> {
  const audit = async (
    action: AuditEvent["action"],
    id: string,
    detail: NonNullable<AuditEvent["detail"]>,
  ): Promise<void> => {
    await recordAudit(tx, signing.audit, { accountId, actor, action, subjectId: id, detail });
  };
  const stored = await listWebhookEndpoints(tx, [accountId]);
  for (const { id, url, isFromDocument } of stored) {
    if (!isFromDocument || wanted.some((each) => each.url === url)) continue;
    await dropWebhookEndpoint(tx, id);
    await audit("webhook.delete", id, { origin: new URL(url).origin });
  }
  for (const endpoint of wanted) {
    const detail = { origin: new URL(endpoint.url).origin, events: endpoint.events.join(" ") };
    const own = ownOf(stored, endpoint.url);
    if (own === undefined) {
      const id = newId(ID_PREFIX.webhookEndpoint);
      await insertWebhookEndpoint(tx, { ...endpoint, id, accountId, isFromDocument: true });
      await audit("webhook.create", id, detail);
    } else if (!isSame(own, endpoint)) {
      await adoptWebhookEndpoint(tx, own.id, endpoint);
      await audit("webhook.update", own.id, detail);
    }
  }
  if (wanted.length > 0 && (await countWebhookEndpoints(tx, accountId)) > limits.webhookEndpointsMax)
    throw new OperatorError(
      `The account would have more than ${limits.webhookEndpointsMax} webhook endpoints, the maximum, with those that were created otherwise. \`latchkey webhooks list\` shows them. Nothing was changed.`,
    );
}

/** The document's own, or else the oldest of this URL. */
const ownOf = (stored: readonly WebhookEndpoint[], url: string): WebhookEndpoint | undefined => {
  const same = stored.filter((each) => each.url === url);
  return same.find(({ isFromDocument }) => isFromDocument) ?? same[0];
};

const isSame = (stored: WebhookEndpoint, { events, description }: DocumentEndpoint): boolean =>
  stored.isFromDocument && stored.description === description && stored.events.join(" ") === events.join(" ");
