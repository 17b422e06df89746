import type { Database } from "#db/connection/pool.ts";
import {
  findAnyVaultKeyId,
  insertFirstVaultKey,
  readVaultKeys,
  type VaultKey,
} from "#db/credentials/vault-keys.ts";
import { describeRefused, type RowRefused } from "#domain/refused-row.ts";
import { readKeys, type ReadKeys } from "#vault/key-source.ts";
import { openVault, VaultError, type Keyring, type Vault } from "#vault/vault.ts";
import { ExplainedError } from "#lib/explained-error.ts";

const SENTINEL = "latchkey sentinel";

/** The master key does not match the database, or is missing where it is needed. The message states what to do. */
export class VaultSetupError extends ExplainedError {}

/**
 * The vault of this database. The first start with a master key writes its public half and a sentinel sealed with it; every
 * later start opens the sentinel of every key, so that a wrong or missing one is found at start and not at the first run
 * (docs/decisions/0013). Without private keys (an api-only process) the vault can seal and not open.
 */
export async function prepareVault(db: Database, privateHalf: ReadKeys | null): Promise<Keyring> {
  if (privateHalf && (await findAnyVaultKeyId(db)) === undefined) {
    const { kid, publicJwk } = privateHalf.masterKey;
    await insertFirstVaultKey(db, { kid, publicJwk, sentinel: await sealSentinel(publicJwk) });
  }
  const { genuine: keys, refused } = await readVaultKeys(db);
  const primary = keys.find((key) => key.isPrimary);
  if (!primary) throw withoutPrimary(refused);
  if (!privateHalf) return openVault({ publicKey: primary.publicJwk });
  const { masterKey, source } = privateHalf;
  const vault = openVault({
    publicKey: primary.publicJwk,
    privateKeys: masterKey.privateKeys,
    ...(source.canReread ? { reread: async () => (await readKeys(source)).masterKey.privateKeys } : {}),
  });
  for (const key of keys) await openSentinel(vault, privateHalf, key);
  return vault;
}

function withoutPrimary(refused: readonly RowRefused[]): VaultSetupError {
  if (refused.length === 0) {
    return new VaultSetupError(
      "The vault has no key yet: start once with the master key (the worker role), or run `latchkey init`.",
    );
  }
  return new VaultSetupError(
    `${refused.map(describeRefused).join(" ")} The vault has no other key that may seal, so nothing is sealed. Find out who can write to ` +
      "the database. Then, where the master key is, `latchkey master-key add KID` and `latchkey master-key promote KID` with the id of " +
      "your own key restore its row.",
  );
}

/** The sentinel of a key of the database: only a holder of the private half can open it. */
export async function sealSentinel(publicJwk: string): Promise<Uint8Array> {
  const vault = openVault({ publicKey: publicJwk });
  return (await vault.seal(Buffer.from(SENTINEL), sentinelBinding(vault.kid))).sealed;
}

async function openSentinel(vault: Vault, { masterKey, source }: ReadKeys, key: VaultKey): Promise<void> {
  if (!masterKey.privateKeys.has(key.kid)) {
    throw new VaultSetupError(
      `The master key does not belong to this database: ${source.name} has ${[...masterKey.privateKeys.keys()].join(", ")} ` +
        `and not ${key.kid}, with which values of this database are or may be sealed. Give the keyset that holds it, from ` +
        "your backup if necessary; `latchkey master-key status` shows what each key seals.",
    );
  }
  try {
    const plain = await vault.open(key.sentinel, sentinelBinding(key.kid));
    if (Buffer.from(plain).toString("utf8") === SENTINEL) return;
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
  }
  throw new VaultSetupError(
    `The sentinel of master key ${key.kid} does not open with that key: its row in the table vault_key was changed. ` +
      "Restore the row from a backup of the database, and find out who changed it.",
  );
}

function sentinelBinding(kid: string) {
  return { purpose: "sentinel", accountId: "", rowId: kid, strategyId: "" } as const;
}
