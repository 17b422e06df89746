import { insertKey } from "#db/api-keys.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import { defaultScopes, type KeyScope } from "#domain/key-scope.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { newApiKey } from "#lib/api-key.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { lookUpDocument } from "#db/config-documents.ts";
import { OperatorError, requireAccount } from "#actions/operator-error.ts";
import { openTestAccount } from "#actions/test-mode/open-test-account.ts";

export interface NewKeyRequest {
  /** The account's slug. */
  readonly account: string;
  readonly name: string;
  /** null: every Blueprint of the account, including later ones. */
  readonly blueprintKeys: readonly string[] | null;
  /** null: `runs` for a key that is limited to Blueprints, else all. */
  readonly scopes: readonly KeyScope[] | null;
  readonly lifetimeMs: number | null;
  /** A key of test mode: of the account's test account, which is created with the first one. */
  readonly isTest?: boolean;
}

/** Creates a key. Only the result contains its text: the database stores a keyed hash. Throws OperatorError. */
export async function createApiKey(
  db: Database,
  signing: Signing,
  request: NewKeyRequest,
  actor: AuditActor = { kind: "cli" },
): Promise<{ readonly id: string; readonly key: string }> {
  const named = await requireAccount(db, request.account);
  const account = request.isTest === true ? await openTestAccount(db, signing, named, actor) : named;
  for (const key of request.blueprintKeys ?? []) {
    if (!(await lookUpDocument(db, "blueprint", account.id, key))) {
      throw new OperatorError(
        `Account "${request.account}" has no Blueprint "${key}". Apply its document first.`,
        "missing",
      );
    }
  }
  const scopes = request.scopes ?? defaultScopes(request.blueprintKeys);
  const id = newId(ID_PREFIX.apiKey);
  const key = newApiKey(account.isTest);
  await db.transaction(async (tx) => {
    await insertKey(tx, {
      id,
      accountId: account.id,
      name: request.name,
      hash: signing.apiKeyHash(key),
      blueprintKeys: request.blueprintKeys,
      scopes,
      lifetimeMs: request.lifetimeMs,
    });
    await recordAudit(tx, signing.audit, {
      accountId: account.id,
      actor,
      action: "key.create",
      subjectId: id,
      detail: {
        blueprints: request.blueprintKeys?.join(",") ?? null,
        scopes: scopes.join(","),
        lifetime_ms: request.lifetimeMs,
      },
    });
  });
  return { id, key };
}
