import { findAccountBySlug } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { listWebhookEndpoints } from "#db/webhooks/webhook-endpoints.ts";
import { readWebhooks } from "#domain/webhook-documents.ts";
import type { CheckedDocument } from "./check-config.ts";

/** Endpoints of documents whose secret nobody knows yet. */
export async function warnOfEndpoints(
  db: Database,
  steps: readonly { readonly change: string; readonly checked: CheckedDocument }[],
): Promise<readonly string[]> {
  const warnings: string[] = [];
  for (const { change, checked } of steps) {
    const wanted = checked.kind === "account" ? readWebhooks(checked.document) : [];
    if (change === "unchanged" || wanted.length === 0) continue;
    const account = await findAccountBySlug(db, checked.account);
    const stored = account === undefined ? [] : await listWebhookEndpoints(db, [account.id]);
    const signed = new Set(stored.flatMap(({ url, hasSecret }) => (hasSecret ? [url] : [])));
    for (const { url } of wanted)
      if (!signed.has(url))
        warnings.push(
          `the webhook endpoint ${url} of the account ${checked.account} has no signing secret yet: its events wait until \`latchkey webhooks rotate\`, or the dashboard, has shown one`,
        );
  }
  return warnings;
}
