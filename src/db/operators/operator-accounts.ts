import type { Database } from "#db/connection/pool.ts";

export interface SeenAccount {
  readonly id: string;
  /** Its slug. */
  readonly account: string;
  readonly name: string;
  readonly document: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const SEEN = `select id, slug as account, name, document, created_at as "createdAt", updated_at as "updatedAt" from account`;

/** `ids`: only these; null: all. */
export async function listSeenAccounts(
  db: Database,
  ids: readonly string[] | null,
): Promise<readonly SeenAccount[]> {
  return await db.query<SeenAccount>(`${SEEN} where $1::text[] is null or id = any($1) order by slug`, [ids]);
}

export async function findAccountDocument(db: Database, slug: string): Promise<SeenAccount | undefined> {
  const rows = await db.query<SeenAccount>(`${SEEN} where slug = $1`, [slug]);
  return rows[0];
}
