import { createHash } from "node:crypto";
import type { Database } from "#db/connection/pool.ts";

/** Does something while a transaction of another process, as it were, holds an Idempotency-Key of the account `acme`. */
export async function whileKeyIsHeld<T>(db: Database, key: string, work: () => Promise<T>): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query("set local idle_in_transaction_session_timeout = 0");
    await tx.query(
      `insert into idempotency_key (account_id, key_hash, fingerprint, expires_at)
       select id, $1, $2, app_now() + interval '1 day' from account where slug = 'acme'`,
      [createHash("sha256").update(key).digest(), Buffer.alloc(32)],
    );
    return await work();
  });
}
