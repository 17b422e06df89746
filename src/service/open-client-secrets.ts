import type { VariableOrigins } from "#actions/upkeep/list-variable-origins.ts";
import { findAccountById } from "#db/accounts.ts";
import { findAccountSecret } from "#db/account-secrets.ts";
import type { Database } from "#db/connection/pool.ts";
import { readAccountSecret, type FoundSecret, type SecretReference } from "#domain/account-secret.ts";
import type { Secret } from "#lib/secret.ts";
import { accountSecretBinding } from "#vault/binding.ts";
import { VaultError, type Vault } from "#vault/vault.ts";
import type { SecretsFile } from "./settings/client-secrets.ts";

/** Finds the secret that a login's document refers to, for an account. */
export type FindClientSecret = (accountId: string, reference: SecretReference) => Promise<FoundSecret>;

/**
 * Finds a login's client secret: first in the file from the settings, then in the vault, then, for a version from before account
 * secrets, in the environment. An imported variable is a secret of the same name, and the secret's origins apply. `variables`:
 * where the others may be sent, according to the strategies at the start of the process. Later changes to the database add
 * nothing.
 */
export function openClientSecrets(from: {
  readonly db: Database;
  readonly vault: Vault;
  readonly file: SecretsFile;
  readonly environmentSecret: (name: string) => Secret | null;
  readonly variables: VariableOrigins;
}): FindClientSecret {
  const { db, vault, file, environmentSecret, variables } = from;
  return async (accountId, { kind, name }) => {
    // The account comes from the run or session, never from a document.
    const slug = (await findAccountById(db, accountId))?.slug;
    const given = slug === undefined ? undefined : file.get(slug)?.get(name);
    if (given !== undefined) return { kind: "found", value: given.value.reveal(), origins: given.origins };
    const kept = await openKept(db, vault, accountId, name);
    if (kind === "secret" || kept.kind === "found" || kept.kind === "broken") return kept;
    const origins = variables.get(`${accountId}/${name}`);
    const value = origins === undefined ? null : environmentSecret(name);
    return origins === undefined || value === null ? kept : { kind: "found", value: value.reveal(), origins };
  };
}

async function openKept(db: Database, vault: Vault, accountId: string, name: string): Promise<FoundSecret> {
  const row = await findAccountSecret(db, accountId, name);
  if (row === undefined) return { kind: "missing" };
  try {
    const plain = await vault.open(row.sealed, accountSecretBinding(accountId, name, row.valueId));
    const secret = readAccountSecret(Buffer.from(plain).toString("utf8"));
    plain.fill(0);
    return secret === null ? { kind: "broken" } : { kind: "found", ...secret };
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    return { kind: error.code === "no_private_key" ? "sealed" : "broken" };
  }
}
