import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#db/connection/pool.ts";
import { listVaultKeys, type VaultKey } from "#db/credentials/vault-keys.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Keyring } from "#vault/vault.ts";

const EVERY_MS = 1_000;

/**
 * Keeps the keys of a running process up to date with the database: it learns a key that was added, and seals with the one that
 * was promoted, within two seconds and without a restart. A row that this installation has not signed is ignored: the process
 * keeps using its current key. Returns a function that stops it.
 */
export function followVaultKeys(db: Database, vault: Keyring, log: Log): () => Promise<void> {
  const ending = new AbortController();
  const told = new Set<string>();
  const follow = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await sleep(EVERY_MS, undefined, { signal: ending.signal, ref: false }).catch(() => undefined);
      if (ending.signal.aborted) return;
      try {
        await updateKeyring(vault, await listVaultKeys(db), (kid, text) => {
          if (!told.has(kid)) log.error({ kid }, text);
          told.add(kid);
        });
      } catch (error) {
        // The database is unavailable, or a key is damaged: the keys remain unchanged.
        log.debug(describeError(error), "reading the vault's keys failed; retrying");
      }
    }
  };
  const ended = follow();
  return async () => {
    ending.abort();
    await ended;
  };
}

async function updateKeyring(
  vault: Keyring,
  keys: readonly VaultKey[],
  complain: (kid: string, text: string) => void,
): Promise<void> {
  const isOpener = vault.canOpen;
  for (const { kid, publicJwk, isPrimary } of keys) {
    // A process that opens never seals with a key that it does not hold, including one that was inserted into the table from outside.
    if (isOpener && !(await vault.learn(kid).catch(() => false))) {
      complain(
        kid,
        "A master key was added that this process does not have. Give it the new keyset and restart it before the key is promoted.",
      );
    } else if (isPrimary && vault.kid !== kid) vault.sealWith(publicJwk);
  }
}
