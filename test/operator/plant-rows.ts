import { createTestDatabase, type TestDatabase } from "../database.ts";

const PATIENCE_MS = 900_000;

/** A database with rows that no service wrote, without what triggers do; `table` is the large one. */
export async function openPlanted(plants: readonly string[], table: string): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await database.db.transaction(async (tx) => {
    await tx.query("set local statement_timeout = 0");
    await tx.query("set local session_replication_role = replica");
    for (const statement of plants) await tx.query({ text: statement, timeoutMs: PATIENCE_MS });
  });
  await database.db.query({ text: `analyze ${table}`, timeoutMs: PATIENCE_MS });
  return database;
}
