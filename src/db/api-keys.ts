import type { KeyScope } from "#domain/key-scope.ts";
import type { Account } from "./accounts.ts";
import { grouped } from "./connection/group.ts";
import type { Database } from "./connection/pool.ts";
import { doneBy } from "./operators/whose.ts";

export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** null: every Blueprint of the account. */
  readonly blueprintKeys: readonly string[] | null;
  /** null: created before there were scopes, so all of them. */
  readonly scopes: readonly KeyScope[] | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** The key that replaced it in a rotation; then `expiresAt` is the end of the overlap. */
  readonly replacedBy: string | null;
  /** By the database's clock. */
  readonly isExpired: boolean;
}

export interface AuthenticatedKey {
  readonly keyId: string;
  readonly blueprintKeys: readonly string[] | null;
  readonly scopes: readonly KeyScope[] | null;
  readonly account: Account;
  /** Time until it expires; null: never. */
  readonly remainingMs: number | null;
}

interface LiveKeyRow extends Account {
  readonly keyId: string;
  readonly blueprintKeys: string[] | null;
  readonly scopes: KeyScope[] | null;
  readonly hash: Buffer;
  readonly remainingMs: number | null;
}

/** The active key with this hash and its account; undefined if unknown, expired or revoked. Concurrent calls share a statement. */
export const findLiveKey = grouped<Buffer, AuthenticatedKey | undefined>(async (db, hashes) => {
  const rows = await db.query<LiveKeyRow>({
    name: "find_live_keys",
    text: `select key.hash, key.id as "keyId", key.blueprint_keys as "blueprintKeys", key.scopes,
        (extract(epoch from key.expires_at - app_now()) * 1000)::float8 as "remainingMs",
        account.id, account.slug, account.name, account.test_of is not null as "isTest",
        account.allowed_origins as "allowedOrigins",
        coalesce(account.embed_origins, account.allowed_origins) as "embedOrigins", account.session_lifetime_ms as "sessionLifetimeMs",
        account.retention_ms as "retentionMs", account.concurrency,
        case when account.rate_per_second is null then null
          else json_build_object('perSecond', account.rate_per_second, 'burst', account.rate_burst) end as "rateLimit"
      from api_key key join account on account.id = key.account_id
      where key.hash = any($1) and key.revoked_at is null and (key.expires_at is null or key.expires_at > app_now())`,
    values: [hashes],
  });
  const found = new Map(rows.map((row) => [row.hash.toString("latin1"), readLiveKey(row)]));
  return hashes.map((hash) => found.get(hash.toString("latin1")));
});

function readLiveKey(row: LiveKeyRow): AuthenticatedKey {
  const { id, slug, name, isTest, sessionLifetimeMs, retentionMs, concurrency, rateLimit } = row;
  const { allowedOrigins, embedOrigins } = row;
  const settings = { allowedOrigins, embedOrigins, sessionLifetimeMs, retentionMs, concurrency, rateLimit };
  return {
    keyId: row.keyId,
    blueprintKeys: row.blueprintKeys,
    scopes: row.scopes,
    account: { id, slug, name, isTest, ...settings },
    remainingMs: row.remainingMs,
  };
}

/** Undefined: there is no such key. */
export async function findAccountOfKey(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from api_key where id = $1`,
    [id],
  );
  return rows[0]?.accountId;
}

/** Which of these keys have been revoked or have expired. */
export async function listDeadKeys(db: Database, keyIds: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from api_key where id = any($1) and (revoked_at is not null or expires_at <= app_now())`,
    [keyIds],
  );
  return rows.map((row) => row.id);
}

/** Records the use of a key, at most once a minute per key. */
export async function touchKey(db: Database, keyId: string): Promise<void> {
  await db.query(
    `update api_key set last_used_at = app_now()
     where id = $1 and (last_used_at is null or last_used_at < app_now() - interval '1 minute')`,
    [keyId],
  );
}

export async function insertKey(
  db: Database,
  key: {
    readonly id: string;
    readonly accountId: string;
    readonly name: string;
    readonly hash: Uint8Array;
    readonly blueprintKeys: readonly string[] | null;
    readonly scopes: readonly KeyScope[] | null;
    readonly lifetimeMs: number | null;
  },
): Promise<void> {
  await db.query(
    `insert into api_key (id, account_id, name, hash, blueprint_keys, expires_at, scopes)
     values ($1, $2, $3, $4, $5, app_now() + $6::bigint * interval '1 ms', $7)`,
    [key.id, key.accountId, key.name, key.hash, key.blueprintKeys, key.lifetimeMs, key.scopes],
  );
}

export interface ListedKey extends ApiKey {
  /** Slug. */
  readonly account: string;
  /** By the audit log; null: it does not say any more. */
  readonly createdBy: string | null;
}

/** The key that this one replaced: a rotation is recorded at the old one. */
const REPLACED = `(select old.id from api_key old where old.account_id = key.account_id and old.replaced_by = key.id limit 1)`;

export async function listKeys(
  db: Database,
  accountIds: readonly string[] | null,
): Promise<readonly ListedKey[]> {
  return await db.query<ListedKey>(
    `select key.id, key.account_id as "accountId", account.slug as "account", key.name,
       key.blueprint_keys as "blueprintKeys", key.scopes, key.created_at as "createdAt", key.expires_at as "expiresAt",
       key.revoked_at as "revokedAt", key.last_used_at as "lastUsedAt", key.replaced_by as "replacedBy",
       coalesce(key.expires_at <= app_now(), false) as "isExpired",
       coalesce(${doneBy("key.id", "key.create")}, ${doneBy(REPLACED, "key.rotate")}) as "createdBy"
     from api_key key join account on account.id = key.account_id
     where $1::text[] is null or key.account_id = any($1) order by account.slug, key.created_at, key.id`,
    [accountIds],
  );
}

/** Revokes a key; undefined if there is no such key. `isNew` is false if it was already revoked. */
export async function revokeKey(
  db: Database,
  keyId: string,
): Promise<{ readonly accountId: string; readonly isNew: boolean } | undefined> {
  const rows = await db.query<{ accountId: string; isNew: boolean }>(
    `update api_key set revoked_at = coalesce(api_key.revoked_at, app_now())
     from (select id, revoked_at from api_key where id = $1 for update) before
     where api_key.id = before.id returning account_id as "accountId", before.revoked_at is null as "isNew"`,
    [keyId],
  );
  return rows[0];
}

/** A key that is about to be replaced. */
export interface LockedKey {
  readonly accountId: string;
  /** Whether it is one of test mode. */
  readonly isTest: boolean;
  readonly name: string;
  readonly blueprintKeys: readonly string[] | null;
  readonly scopes: readonly KeyScope[] | null;
  /** Its lifetime; null: unlimited. */
  readonly lifetimeMs: number | null;
  readonly expiresAt: Date | null;
  readonly isExpired: boolean;
  readonly isRevoked: boolean;
  readonly replacedBy: string | null;
}

/** The key, locked until the transaction ends, so that a concurrent rotation sees this one's result. */
export async function lockKey(tx: Database, keyId: string): Promise<LockedKey | undefined> {
  const rows = await tx.query<LockedKey>(
    `select account_id as "accountId", name, blueprint_keys as "blueprintKeys", scopes,
       round(extract(epoch from expires_at - created_at) * 1000)::bigint as "lifetimeMs", expires_at as "expiresAt",
       coalesce(expires_at <= app_now(), false) as "isExpired", revoked_at is not null as "isRevoked",
       replaced_by as "replacedBy",
       (select test_of is not null from account where account.id = account_id) as "isTest"
     from api_key where id = $1 for update`,
    [keyId],
  );
  return rows[0];
}

/**
 * Lets a replaced key expire after the overlap, but never later than its own expiry. An overlap of 0 revokes it immediately. Returns the
 * expiry.
 */
export async function endReplacedKey(
  tx: Database,
  keyId: string,
  replacedBy: string,
  overlapMs: number,
): Promise<Date | undefined> {
  const rows = await tx.query<{ expiresAt: Date }>(
    `update api_key set replaced_by = $2, expires_at = least(expires_at, app_now() + $3::bigint * interval '1 ms'),
       revoked_at = case when $3::bigint = 0 then app_now() end
     where id = $1 and replaced_by is null and revoked_at is null returning expires_at as "expiresAt"`,
    [keyId, replacedBy, overlapMs],
  );
  return rows[0]?.expiresAt;
}
