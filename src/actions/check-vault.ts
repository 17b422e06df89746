import { listSealedCredentials } from "#db/credentials.ts";
import type { Database } from "#db/pool.ts";
import { VaultError, type Vault } from "#vault/vault.ts";

const BATCH = 500;

/** Opens every credential and throws the plain text away: which of them can't be opened. */
export async function listUnopenable(
  db: Database,
  vault: Vault,
): Promise<{ readonly checked: number; readonly broken: readonly string[] }> {
  const broken: string[] = [];
  let checked = 0;
  let last = "";
  for (
    let rows = await listSealedCredentials(db, last, BATCH);
    rows.length > 0;
    rows = await listSealedCredentials(db, last, BATCH)
  ) {
    for (const row of rows) {
      try {
        const binding = {
          purpose: "credential",
          accountId: row.accountId,
          rowId: row.id,
          strategyId: row.strategyId,
        } as const;
        (await vault.open(row.sealed, binding)).fill(0);
      } catch (error) {
        if (!(error instanceof VaultError)) throw error;
        broken.push(row.id);
      }
      checked++;
      last = row.id;
    }
  }
  return { checked, broken };
}
