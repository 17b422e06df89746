import { findAccountBySlug } from "#db/accounts.ts";
import { insertKey } from "#db/api-keys.ts";
import type { Database } from "#db/pool.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { newApiKey } from "#lib/api-key.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { findBlueprintByKey } from "#db/config-documents.ts";

export interface NewKeyRequest {
  /** The account's slug. */
  readonly account: string;
  readonly name: string;
  /** null: every Blueprint of the account, also later ones. */
  readonly blueprintKeys: readonly string[] | null;
  readonly lifetimeMs: number | null;
}

/** What the operator asked for can't be done; the message says why and what to do. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
}

/** Makes a key. Its text is in the answer and nowhere else: the database keeps a keyed hash. Throws OperatorError. */
export async function createApiKey(
  db: Database,
  signing: Signing,
  request: NewKeyRequest,
): Promise<{ readonly id: string; readonly key: string }> {
  const account = await findAccountBySlug(db, request.account);
  if (!account) {
    throw new OperatorError(
      `There is no account "${request.account}". Apply its document first: latchkey apply -f FILE.`,
    );
  }
  for (const key of request.blueprintKeys ?? []) {
    if (!(await findBlueprintByKey(db, account.id, key))) {
      throw new OperatorError(
        `Account "${request.account}" has no Blueprint "${key}". Apply its document first.`,
      );
    }
  }
  const id = newId(ID_PREFIX.apiKey);
  const key = newApiKey();
  await insertKey(db, {
    id,
    accountId: account.id,
    name: request.name,
    hash: signing.apiKeyHash(key),
    blueprintKeys: request.blueprintKeys,
    lifetimeMs: request.lifetimeMs,
  });
  return { id, key };
}
