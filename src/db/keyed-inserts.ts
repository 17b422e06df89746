import { failpoint, type Failpoint } from "#lib/failpoint.ts";
import type { Columns } from "./connection/given-rows.ts";
import { grouped } from "./connection/group.ts";
import type { Database, Statement } from "./connection/pool.ts";
import type { StoredAnswer } from "./idempotency.ts";

/** A claim of an idempotency key together with its answer. */
export interface KeyRecord extends StoredAnswer {
  readonly keyHash: Buffer;
  readonly windowMs: number;
}

/** A row to insert, and the idempotency key under which its answer is stored. */
export interface KeyedInsert {
  /** null: the caller sent no key, or has claimed it already. */
  readonly record: KeyRecord | null;
}

type MadePoint = Extract<
  Failpoint,
  "trigger.after_insert" | "session.after_insert" | "session.after_complete"
>;

/** A group does not wait for one row's locks (another process's key, a credential being deleted). */
const GROUP_LOCK_TIMEOUT_MS = 100;

/**
 * Returns a function that inserts a row in one transaction with the rows of concurrent requests. It returns true after COMMIT, and false
 * if nothing was written, because the key is taken, a row is locked, or another row failed: the caller then inserts its row alone, which
 * reports the reason. `insertAll` is a single statement that returns the ids of the inserted rows.
 */
export function insertedTogether<Insert extends KeyedInsert>(
  insertAll: (inserts: readonly Insert[]) => Statement,
  idOf: (insert: Insert) => string,
  madePoint: MadePoint,
): (db: Database, insert: Insert) => Promise<boolean> {
  return grouped<Insert, boolean>(
    async (db, inserts) => {
      const rows = await db.transact<{ readonly id: string }>(
        insertAll(inserts),
        { lockTimeoutMs: GROUP_LOCK_TIMEOUT_MS },
        async (made) => {
          const ids = idsOf(made);
          for (const insert of inserts)
            if (ids.has(idOf(insert))) await passFailpoints(insert.record !== null, madePoint);
        },
      );
      const made = idsOf(rows);
      return inserts.map((insert) => made.has(idOf(insert)));
    },
    { alone: async () => false },
  );
}

const idsOf = (rows: readonly { readonly id: string }[]): ReadonlySet<string> =>
  new Set(rows.map(({ id }) => id));

async function passFailpoints(hasKey: boolean, madePoint: MadePoint): Promise<void> {
  await failpoint(madePoint);
  if (hasKey) await passKeyPoints();
}

/** For each key that a group has claimed. */
export async function passKeyPoints(): Promise<void> {
  await failpoint("idempotency.after_claim");
  await failpoint("idempotency.before_commit");
}

/** The columns of `given` for the idempotency key and the stored answer. */
export const RECORD: Columns<KeyedInsert> = {
  key_hash: ["bytea", ({ record }) => record?.keyHash ?? null],
  fingerprint: ["bytea", ({ record }) => record?.fingerprint ?? null],
  bytes_fingerprint: ["bytea", ({ record }) => record?.bytesFingerprint ?? null],
  window_ms: ["bigint", ({ record }) => record?.windowMs ?? null],
  status: ["int", ({ record }) => record?.status ?? null],
  body: ["bytea", ({ record }) => record?.body ?? null],
};

/** The same, with the position of the session's token in the answer. */
export const SESSION_RECORD: Columns<KeyedInsert> = {
  ...RECORD,
  token_session_id: ["text", ({ record }) => record?.tokenSessionId ?? null],
  token_at: ["int", ({ record }) => record?.tokenAt ?? null],
};

/** Selects one row of `given` for each key. Rows are ordered by key, because two groups must not wait for each other. */
export const oncePerKey = (where = ""): string =>
  `select distinct on (account_id, key_hash, case when key_hash is null then id end) * from given ${where}
    order by account_id, key_hash, case when key_hash is null then id end, id`;

const STORED = "account_id, key_hash, fingerprint, bytes_fingerprint, expires_at, status, body";

/** Claims the keys of `ready` and stores their answers. `more`: further columns of the record. */
export const claimKeys = (more: readonly string[] = []): string =>
  `insert into idempotency_key (${[STORED, ...more].join(", ")})
    select ${["account_id, key_hash, fingerprint, bytes_fingerprint, app_now() + window_ms * interval '1 ms', status, body", ...more].join(", ")} from ready
    where key_hash is not null order by account_id, key_hash
    on conflict do nothing returning account_id, key_hash`;

/** A condition on a row of `ready`: it has no key, or has claimed it. */
export const HAS_ITS_KEY =
  "key_hash is null or (account_id, key_hash) in (select account_id, key_hash from claimed)";
