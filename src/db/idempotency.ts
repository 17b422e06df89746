import { grouped, inOrder } from "./connection/group.ts";
import type { Database } from "./connection/pool.ts";

/** A stored answer. `body` contains no secret: the hosted token is omitted at `tokenAt` and derived again for a replay. */
export interface StoredAnswer {
  readonly fingerprint: Buffer;
  /** Of the body's bytes; null: unknown. */
  readonly bytesFingerprint: Buffer | null;
  readonly status: number;
  readonly body: Buffer;
  readonly tokenSessionId: string | null;
  readonly tokenAt: number | null;
}

const STORED_COLUMNS = `fingerprint, bytes_fingerprint as "bytesFingerprint", status, body,
  token_session_id as "tokenSessionId", token_at as "tokenAt"`;

const STATEMENT_SLACK_MS = 1_000;

/**
 * Claims a key inside the effect's transaction. A concurrent duplicate waits here, on the unique index, until the first has
 * committed or rolled back. True: the caller continues and must store its answer; false: read it with findAnswer. Spec,
 * Idempotency 2: 24 hours, by the database's clock; an outdated row is replaced at once.
 */
export async function claimKey(
  db: Database,
  key: {
    readonly accountId: string;
    readonly keyHash: Uint8Array;
    readonly fingerprint: Uint8Array;
    readonly bytesFingerprint: Uint8Array | null;
    readonly windowMs: number;
    /** How long to wait for a concurrent duplicate before failing with SQLSTATE 55P03. */
    readonly waitMs: number;
  },
): Promise<boolean> {
  // One round trip: the second statement is sent before the first is answered, and fails if the first one does.
  const setTimeouts = db.query(
    `select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
    [String(key.waitMs), String(key.waitMs + STATEMENT_SLACK_MS)],
  );
  const insert = db.query({
    timeoutMs: key.waitMs + 2 * STATEMENT_SLACK_MS,
    text: `insert into idempotency_key (account_id, key_hash, fingerprint, bytes_fingerprint, expires_at)
     values ($1, $2, $3, $4, app_now() + $5::bigint * interval '1 ms')
     on conflict (account_id, key_hash) do update
       set fingerprint = excluded.fingerprint, bytes_fingerprint = excluded.bytes_fingerprint, expires_at = excluded.expires_at,
         status = null, body = null, token_session_id = null, token_at = null
       where idempotency_key.expires_at <= app_now()
     returning 1`,
    values: [key.accountId, key.keyHash, key.fingerprint, key.bytesFingerprint, key.windowMs],
  });
  const [, rows] = await Promise.all([setTimeouts, insert]);
  return rows.length > 0;
}

export async function findAnswer(
  db: Database,
  accountId: string,
  keyHash: Uint8Array,
): Promise<StoredAnswer | undefined> {
  const rows = await db.query<StoredAnswer>(
    `select ${STORED_COLUMNS}
     from idempotency_key where account_id = $1 and key_hash = $2 and expires_at > app_now() and status is not null`,
    [accountId, keyHash],
  );
  return rows[0];
}

/** The same outside a transaction, before anything is claimed. Many at once are one statement. */
export const lookUpAnswer = grouped<
  { readonly accountId: string; readonly keyHash: Buffer },
  StoredAnswer | undefined
>(async (db, calls) => {
  const rows = await db.query<StoredAnswer & { at: number }>({
    name: "look_up_answers",
    text: `select given.at::int, ${STORED_COLUMNS}
      from unnest($1::text[], $2::bytea[]) with ordinality as given(account_id, key_hash, at)
        join idempotency_key stored on stored.account_id = given.account_id and stored.key_hash = given.key_hash
      where expires_at > app_now() and status is not null`,
    values: [calls.map((call) => call.accountId), calls.map((call) => call.keyHash)],
  });
  return inOrder(rows, calls);
});

export async function storeAnswer(
  db: Database,
  accountId: string,
  keyHash: Uint8Array,
  answer: Omit<StoredAnswer, "fingerprint" | "bytesFingerprint">,
): Promise<void> {
  await db.query(
    `update idempotency_key set status = $3, body = $4, token_session_id = $5, token_at = $6
     where account_id = $1 and key_hash = $2`,
    [accountId, keyHash, answer.status, answer.body, answer.tokenSessionId, answer.tokenAt],
  );
}

/** Housekeeping only: whether a key is still valid is decided when it is looked up. Deletes up to `limit` rows and returns their number. */
export async function deleteOutdatedKeys(db: Database, limit: number): Promise<number> {
  const rows = await db.query(
    `delete from idempotency_key where (account_id, key_hash) in (
       select account_id, key_hash from idempotency_key where expires_at <= app_now() limit $1 for update skip locked)
     returning 1`,
    [limit],
  );
  return rows.length;
}
