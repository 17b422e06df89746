import { findStrategy } from "#db/config-documents.ts";
import { writeCredential } from "#domain/destination.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Vault } from "#vault/vault.ts";

const AT_ONCE = 500;

/** Credentials as the hosted form would leave them, sealed and complete, each with a secret of its own. Gives their ids. */
export async function plantSealed(
  db: Database,
  vault: Vault,
  strategyId: string,
  count: number,
): Promise<readonly string[]> {
  const [row] = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from strategy where id = $1`,
    [strategyId],
  );
  const { accountId, strategy } = must(await findStrategy(db, row?.accountId ?? "", strategyId), strategyId);
  const ids = Array.from({ length: count }, () => newId("cred_"));
  for (let from = 0; from < count; from += AT_ONCE) {
    const batch = ids.slice(from, from + AT_ONCE);
    const sealed = await Promise.all(
      batch.map(
        async (id) =>
          await vault.seal(Buffer.from(writeCredential(new Map([["token", secretOf(id)]]), strategy.hosts)), {
            purpose: "credential",
            accountId,
            rowId: id,
            strategyId,
          }),
      ),
    );
    await db.query(
      `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
       select id, $2, $3, 'sess_of_' || id, sealed, kid from unnest($1::text[], $4::bytea[], $5::text[]) as planted (id, sealed, kid)`,
      [batch, accountId, strategyId, sealed.map((each) => each.sealed), sealed.map((each) => each.kid)],
    );
  }
  return ids;
}

/** What the planted credential holds in its field `token`. */
export function secretOf(id: string): string {
  return `planted-secret-of-${id}`;
}
