import { findAccountById, type Account } from "#db/accounts.ts";
import { listAppliedDocuments } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { JsonObject } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import type { Signing } from "#lib/signing.ts";
import { lockApply } from "#actions/config/lock-apply.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { saveTestAccount, saveTestDocument } from "./test-documents.ts";

/**
 * The test account of an account; created if there is none yet. Its documents are those that this version of the program derives. Throws
 * OperatorError.
 */
export async function openTestAccount(
  db: Database,
  signing: Signing,
  account: Account,
  actor: AuditActor,
): Promise<Account> {
  if (account.isTest)
    throw new OperatorError(
      `"${account.slug}" is a test account already: name the account that it belongs to.`,
    );
  const id = await db.transaction(async (tx) => {
    // An apply at the same time is either seen here, or sees the test account.
    await lockApply(tx);
    return await deriveAll(tx, signing, account, actor);
  });
  return must(await findAccountById(db, id), "the test account");
}

async function deriveAll(
  tx: Database,
  signing: Signing,
  { id: accountId, slug }: Account,
  actor: AuditActor,
): Promise<string> {
  const own = (await listAppliedDocuments(tx)).filter(({ account }) => account === slug);
  const read = (text: string): JsonObject => JSON.parse(text) as JsonObject;
  const { document } = must(
    own.find(({ kind }) => kind === "account"),
    "the account's document",
  );
  const id = await saveTestAccount(tx, signing, { accountId, actor }, read(document));
  for (const { kind, id: name, document: text } of own)
    if (kind !== "account")
      await saveTestDocument(tx, signing, { accountId: id, actor }, { kind, id: name, document: read(text) });
  return id;
}
