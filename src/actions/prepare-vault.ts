import type { Database } from "#db/pool.ts";
import { insertFirstVaultKey, listVaultKeys } from "#db/vault-keys.ts";
import { must } from "#lib/assert.ts";
import type { MasterKey } from "#vault/master-key.ts";
import { openVault, VaultError, type Vault } from "#vault/vault.ts";

const SENTINEL = "latchkey sentinel";

/** The master key does not fit the database, or is missing where it is needed. Says what to do. */
export class VaultSetupError extends Error {
  override readonly name = "VaultSetupError";
}

/**
 * The vault of this database. The first start with a master key writes its public half and a sentinel sealed with it; every
 * later start opens the sentinel, so that a wrong key is found at start and not at the first run (design, page 6, T4).
 * Without a master key (an api-only process) the vault can seal and not open.
 */
export async function prepareVault(db: Database, masterKey: MasterKey | null): Promise<Vault> {
  if (masterKey && (await listVaultKeys(db)).length === 0) {
    const { kid, publicJwk } = masterKey;
    const fresh = openVault({ publicKey: publicJwk });
    const sentinel = await fresh.seal(Buffer.from(SENTINEL), sentinelBinding(kid));
    await insertFirstVaultKey(db, { kid, publicJwk, sentinel });
  }
  const keys = await listVaultKeys(db);
  const primary = keys.find((key) => key.isPrimary);
  if (!primary) {
    throw new VaultSetupError(
      "The vault has no key yet: start once with the master key (the worker role), or run `latchkey init`.",
    );
  }
  const vault = openVault({
    publicKey: primary.publicJwk,
    ...(masterKey ? { privateKeys: masterKey.privateKeys } : {}),
  });
  if (!masterKey) return vault;
  for (const key of keys) {
    try {
      const plain = await vault.open(key.sentinel, sentinelBinding(key.kid));
      must(Buffer.from(plain).toString("utf8") === SENTINEL || null, "the sentinel's text");
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      throw new VaultSetupError(
        `The master key is not the one of this database: key ${key.kid} can't be opened. ` +
          "Give the master key that belongs to it (LATCHKEY_MASTER_KEY_FILE), from your backup if need be.",
      );
    }
  }
  return vault;
}

function sentinelBinding(kid: string) {
  return { purpose: "sentinel", accountId: "", rowId: kid, strategyId: "" } as const;
}
