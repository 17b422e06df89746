import assert from "node:assert/strict";
import { readDocuments } from "#actions/config/read-documents.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import { saveVersion } from "#db/signing/new-versions.ts";
import type { Database } from "#db/connection/pool.ts";

/** A strategy that `apply` took in an earlier version of the service, whatever it says of it today. */
export async function putStrategyInForce(db: Database, text: string): Promise<void> {
  const [document] = readDocuments([{ file: "f", text }]).documents;
  const { strategy: id, account } = document?.value ?? {};
  assert.ok(document && typeof id === "string" && typeof account === "string", text);
  const found = (await findAccountBySlug(db, account)) ?? assert.fail(`there is no account ${account}`);
  const strategy = {
    kind: "strategy",
    accountId: found.id,
    name: id,
    newId: id,
    document: JSON.stringify(document.value),
    retired: document.value["retired"] === true,
    operatorId: null,
  } as const;
  await db.transaction(async (tx) => void (await saveVersion(tx, strategy)));
}
