import type { Database } from "./pool.ts";

/** True when the operator was made, false when one with this address exists. */
export async function insertOperator(
  db: Database,
  operator: {
    readonly id: string;
    readonly email: string;
    readonly passwordHash: string;
    readonly role: string;
  },
): Promise<boolean> {
  const rows = await db.query(
    `insert into operator (id, email, password_hash, role) values ($1, $2, $3, $4) on conflict (email) do nothing returning id`,
    [operator.id, operator.email, operator.passwordHash, operator.role],
  );
  return rows.length > 0;
}

export async function countOperators(db: Database): Promise<number> {
  const rows = await db.query<{ count: number }>(`select count(*)::int as count from operator`);
  return rows[0]?.count ?? 0;
}
