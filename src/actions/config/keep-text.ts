import { findAccountBySlug } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { saveSource } from "#db/document-sources.ts";
import { must } from "#lib/assert.ts";
import type { CheckedDocument } from "./check-config.ts";
import { keptText } from "./source-text.ts";

/** Comments and layout, also if nothing else has changed. Accounts have no versions to keep them with. */
export async function keepText(tx: Database, { kind, account, id, text }: CheckedDocument): Promise<void> {
  if (kind === "account") return;
  const { id: accountId } = must(await findAccountBySlug(tx, account), "the document's account");
  await saveSource(tx, { kind, accountId, name: id }, keptText(text));
}
