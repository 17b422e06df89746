import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { countSealed, type KeyUse } from "#db/credentials/sealed-places.ts";
import {
  deleteVaultKey,
  insertVaultKey,
  listVaultKeys,
  lockVaultKey,
  lockVaultKeys,
  promoteVaultKey,
  type VaultKey,
} from "#db/credentials/vault-keys.ts";
import type { RowMark } from "#db/signing/signed-rows.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { Secret } from "#lib/secret.ts";
import type { KeySource } from "#vault/key-source.ts";
import { addMasterKey, readMasterKey, setPrimaryKey, type MasterKey } from "#vault/master-key.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { sealSentinel } from "./prepare-vault.ts";

export interface KeyStatus {
  readonly kid: string;
  readonly state: "primary" | "opens only" | "not registered";
  /** null: this process has no keyset. */
  readonly hasPrivateHalf: boolean | null;
  readonly use: readonly KeyUse[];
  readonly createdAt: Date | null;
}

/** Every key of the database, and of the keyset if this process has one. */
export async function listKeyStatus(
  db: Database,
  masterKey: MasterKey | null,
): Promise<readonly KeyStatus[]> {
  const [keys, use] = [await listVaultKeys(db), await countSealed(db)];
  const registered = keys.map(({ kid, isPrimary, createdAt }): KeyStatus => ({
    kid,
    state: isPrimary ? "primary" : "opens only",
    hasPrivateHalf: masterKey && masterKey.privateKeys.has(kid),
    use: use.filter((each) => each.kid === kid),
    createdAt,
  }));
  return [
    ...registered,
    ...unregistered(masterKey, keys).map((kid): KeyStatus => ({
      kid,
      state: "not registered",
      hasPrivateHalf: true,
      use: [],
      createdAt: null,
    })),
  ];
}

export type Added =
  /** The new key is in the keyset and registered in the database. */
  | { readonly kind: "added"; readonly kid: string }
  /** The source is read-only: the operator stores this keyset there, restarts the processes and then registers the key. */
  | { readonly kind: "handed_out"; readonly kid: string; readonly keyset: Secret };

/**
 * Adds a key that opens but does not seal yet. It is first written to the keyset and then registered in the database, so that a
 * process that learns of the key can find it. If the process is killed in between, the key is in the keyset but not registered;
 * `registerKey` continues from there.
 */
export async function addKey(db: Database, audit: AuditKeys, source: KeySource): Promise<Added> {
  return await db.transaction(async (tx) => {
    await lockVaultKeys(tx);
    const { fileText, kid } = addMasterKey((await source.read()).reveal());
    const keyset = new Secret(fileText);
    if (!source.keep) return { kind: "handed_out", kid, keyset };
    await source.keep(keyset, "replace");
    // Only a key that can be read back is registered.
    await register(tx, audit, source, kid);
    return { kind: "added", kid };
  });
}

/** Registers a key of the keyset in the database; it opens and does not seal yet. */
export async function registerKey(
  db: Database,
  audit: AuditKeys,
  source: KeySource,
  kid: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockVaultKeys(tx);
    await register(tx, audit, source, kid);
  });
}

/** The key seals from now on; running processes follow within two seconds. */
export async function promoteKey(
  db: Database,
  audit: AuditKeys,
  source: KeySource,
  kid: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockVaultKeys(tx);
    const keys = await listVaultKeys(tx);
    const key = keys.find((each) => each.kid === kid);
    if (!key) throw unknownKey(kid, keys);
    const keyset = await source.read();
    if (!readMasterKey(keyset.reveal()).privateKeys.has(kid)) {
      throw new OperatorError(
        `The private key of ${kid} is not in ${source.name}: values sealed with it could not be opened here. Give this machine the ` +
          "keyset that has it.",
      );
    }
    // The database decides; the keyset's order only matters for a new, empty database.
    await source.keep?.(new Secret(setPrimaryKey(keyset.reveal(), kid)), "replace");
    for (const [changed, mark] of await promoteVaultKey(tx, key))
      await recordChange(tx, audit, changed, changed === kid ? "promoted" : "demoted", mark);
  });
}

/** Processes follow a promotion within two seconds; the margin protects slower ones. */
const SETTLED_MS = 60_000;

/** Removes a key that nothing needs any more. From the start of this, nothing can be sealed with it. */
export async function retireKey(db: Database, audit: AuditKeys, kid: string): Promise<void> {
  await db.transaction(async (tx) => {
    await lockVaultKeys(tx);
    const key = await lockVaultKey(tx, kid, SETTLED_MS);
    if (!key) throw unknownKey(kid, await listVaultKeys(tx));
    if (key.isPrimary) {
      throw new OperatorError(
        `${kid} is the primary key, which seals all new values. Promote another one first: latchkey master-key promote KID`,
      );
    }
    const use = (await countSealed(tx)).filter((each) => each.kid === kid);
    if (use.length > 0) {
      const counts = use.map(({ noun, total }) => `${total} ${noun}`).join(" and ");
      throw new OperatorError(`${kid} still seals ${counts}. Reseal them first: latchkey master-key rewrap`);
    }
    if (!key.isSettled) {
      throw new OperatorError(
        `${kid} was the primary key until less than ${SETTLED_MS / 1_000} seconds ago: some processes may still use it. ` +
          "Run the command again in a minute.",
      );
    }
    await recordChange(tx, audit, kid, "retired", await deleteVaultKey(tx, kid));
  });
}

function unregistered(masterKey: MasterKey | null, keys: readonly VaultKey[]): readonly string[] {
  const known = new Set(keys.map((key) => key.kid));
  return [...(masterKey?.privateKeys.keys() ?? [])].filter((kid) => !known.has(kid));
}

async function register(tx: Database, audit: AuditKeys, source: KeySource, kid: string): Promise<void> {
  const publicJwk = readMasterKey((await source.read()).reveal()).publicJwks.get(kid);
  if (publicJwk === undefined)
    throw new OperatorError(`There is no key ${kid} in ${source.name}. Put the keyset that has it there.`);
  // Registering again changes nothing: a key that seals continues to.
  if ((await listVaultKeys(tx)).some((key) => key.kid === kid && key.publicJwk === publicJwk)) return;
  const sentinel = await sealSentinel(publicJwk);
  await recordChange(tx, audit, kid, "added", await insertVaultKey(tx, { kid, publicJwk, sentinel }));
}

async function recordChange(
  tx: Database,
  audit: AuditKeys,
  kid: string,
  change: "added" | "promoted" | "demoted" | "retired",
  { audited }: RowMark,
): Promise<void> {
  await recordAudit(tx, audit, {
    accountId: null,
    actor: { kind: "cli" },
    action: "master_key.change",
    subjectId: kid,
    detail: { change, ...audited },
  });
}

function unknownKey(kid: string, keys: readonly VaultKey[]): OperatorError {
  return new OperatorError(
    `This database has no master key ${kid}. Its keys: ${keys.map((key) => key.kid).join(", ")}.`,
  );
}
