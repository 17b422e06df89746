import { limits } from "#domain/limits.ts";
import { given, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import { grouped, inOrder } from "#db/connection/group.ts";
import { claimKeys, HAS_ITS_KEY, oncePerKey, RECORD, type KeyedInsert } from "#db/keyed-inserts.ts";
import { CALL_TO_LOG_IN, LOGIN_IS_FREE, STANDS_FOR } from "#db/runs/lines.ts";
import type { Database } from "#db/connection/pool.ts";

export interface SealedCredential {
  readonly id: string;
  readonly strategyId: string;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

/** Spec, POST /blueprints/{blueprintKey}/trigger 1: only credentials of the account. Locked against a concurrent delete until the transaction ends. */
export async function findCredentials(
  db: Database,
  accountId: string,
  ids: readonly string[],
): Promise<readonly { readonly id: string; readonly strategyId: string }[]> {
  return await db.query<{ id: string; strategyId: string }>(
    `select id, strategy_id as "strategyId" from credential
     where account_id = $1 and id = any($2) and candidate_at is null for key share`,
    [accountId, ids],
  );
}

/** One credential of the account, not locked: callers that use it must lock it later. Many at once are one statement. */
export const lookUpCredential = grouped<
  { readonly accountId: string; readonly id: string },
  { readonly id: string; readonly strategyId: string } | undefined
>(async (db, calls) => {
  const rows = await db.query<{ at: number; id: string; strategyId: string }>({
    name: "look_up_credentials",
    text: `select given.at::int, credential.id, strategy_id as "strategyId"
      from unnest($1::text[], $2::text[]) with ordinality as given(account_id, id, at)
        join credential on credential.account_id = given.account_id and credential.id = given.id and candidate_at is null`,
    values: [calls.map((call) => call.accountId), calls.map((call) => call.id)],
  });
  return inOrder(rows, calls);
});

export async function findSealedCredential(
  db: Database,
  accountId: string,
  id: string,
): Promise<SealedCredential | undefined> {
  const rows = await db.query<SealedCredential>(
    `select id, strategy_id as "strategyId", sealed, kid from credential where account_id = $1 and id = $2`,
    [accountId, id],
  );
  return rows[0];
}

interface Deletion extends KeyedInsert {
  readonly accountId: string;
  readonly id: string;
}

const DELETION: Columns<Deletion> = {
  account_id: ["text", ({ accountId }) => accountId],
  id: ["text", ({ id }) => id],
  ...RECORD,
};

/**
 * Locks different credentials that the caller's transaction deletes, and claims the keys of the requests for that with their answers. Returns
 * the ids of those that are there and not locked by others, that no schedule uses (whose row has to be locked first), and whose key is not taken.
 */
export async function lockForDelete(
  tx: Database,
  deletions: readonly Deletion[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ id: string }>({
    name: "lock_credentials_with_keys",
    text: `with given as (
        select * from ${given("given", DELETION, 1)}
      ), locked as (
        select credential.id from credential join given on given.account_id = credential.account_id and given.id = credential.id
        where not exists (select from schedule_credential used where used.credential_id = credential.id)
        order by credential.id for update of credential skip locked
      ), ready as (
        ${oncePerKey("where id in (select id from locked)")}
      ), claimed as (
        ${claimKeys()}
      )
      select id from ready where ${HAS_ITS_KEY}`,
    values: valuesOf(DELETION, deletions),
  });
  return new Set(rows.map(({ id }) => id));
}

/**
 * Hard delete: the sealed secrets, the data keys inside them, cached logins and used one-time codes go in this statement. Returns the ids of
 * those that the account had.
 */
export async function deleteCredentials(
  tx: Database,
  credentials: readonly { readonly accountId: string; readonly id: string }[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ id: string }>({
    name: "delete_credentials",
    text: `delete from credential where (account_id, id) in (select * from unnest($1::text[], $2::text[])) returning id`,
    values: [credentials.map(({ accountId }) => accountId), credentials.map(({ id }) => id)],
  });
  return new Set(rows.map(({ id }) => id));
}

export async function credentialExists(db: Database, id: string): Promise<boolean> {
  return (await db.query(`select 1 from credential where id = $1`, [id])).length > 0;
}

/** Deletes a credential that a restore brought back, of any account; returns the account. */
export async function deleteRestoredCredential(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `delete from credential where id = $1 returning account_id as "accountId"`,
    [id],
  );
  return rows[0]?.accountId;
}

export interface CachedLogin {
  readonly sealed: Uint8Array;
  readonly kid: string;
  readonly loginId: string;
  readonly expiresAtMs: number;
}

/** The cached login of a credential, if it is for this strategy version and has not expired. */
export async function findLoginSession(
  db: Database,
  credentialId: string,
  strategyVersion: number,
): Promise<CachedLogin | undefined> {
  const rows = await db.query<CachedLogin>(
    `select sealed, kid, login_id as "loginId", (extract(epoch from expires_at) * 1000)::bigint as "expiresAtMs"
     from login_session where credential_id = $1 and strategy_version = $2 and expires_at > app_now()`,
    [credentialId, strategyVersion],
  );
  return rows[0];
}

/** Caches a login. Does nothing if the credential was deleted in the meantime: a delete leaves no secret behind. */
export async function saveLoginSession(
  db: Database,
  login: {
    readonly accountId: string;
    readonly credentialId: string;
    readonly strategyVersion: number;
    readonly sealed: Uint8Array;
    readonly kid: string;
    readonly loginId: string;
    readonly expiresAtMs: number;
  },
): Promise<void> {
  await db.query(
    `insert into login_session (account_id, credential_id, strategy_version, sealed, kid, login_id, expires_at)
     select account_id, id, $3, $4, $5, $6, timestamptz 'epoch' + $7::bigint * interval '1 ms'
       from credential where account_id = $1 and id = $2 for key share
     on conflict (credential_id) do update set strategy_version = excluded.strategy_version,
       sealed = excluded.sealed, kid = excluded.kid, login_id = excluded.login_id, expires_at = excluded.expires_at`,
    [
      login.accountId,
      login.credentialId,
      login.strategyVersion,
      login.sealed,
      login.kid,
      login.loginId,
      login.expiresAtMs,
    ],
  );
}

export async function deleteLoginSession(db: Database, credentialId: string): Promise<void> {
  await db.query(`delete from login_session where credential_id = $1`, [credentialId]);
}

/** Takes a time step of one-time codes. False if it was already taken: that code must not be sent again. */
export async function takeTotpStep(
  db: Database,
  credentialId: string,
  fieldKey: string,
  step: number,
): Promise<boolean> {
  const rows = await db.query(
    `insert into totp_use (credential_id, field_key, step)
     select id, $2, $3 from credential where id = $1
     on conflict do nothing returning step`,
    [credentialId, fieldKey, step],
  );
  if (rows.length > 0) {
    await db.query(
      `delete from totp_use where credential_id = $1 and used_at < app_now() - interval '10 minutes'`,
      [credentialId],
    );
  }
  return rows.length > 0;
}

/** A claimed run: each claim has its own epoch. null: a command, which nobody can take over. */
interface LoginClaim {
  readonly runId: string;
  readonly epoch: number | null;
}

/** For `$2` and `$3`: no other worker has claimed the run since. */
const IS_CLAIM = `($3::int is null or exists (select from run where id = $2 and lease_epoch = $3::int))`;

/**
 * Takes the login lock of a credential for a limited time. The same run can take it again: a killed worker's run continues, and a called
 * run already has it. `line`: another run has it, and others queue for it. `lost`: another claim has the run, so there is nothing to
 * wait for.
 */
export async function takeLogin(
  db: Database,
  credentialId: string,
  { runId, epoch }: LoginClaim,
  lifetimeMs: number,
): Promise<"taken" | "busy" | "line" | "lost"> {
  const rows = await db.query({
    name: "take_login",
    text: `update credential set login_run_id = $2, login_until = app_now() + $4::bigint * interval '1 ms',
        login_next = nullif(login_next, $2)
      where id = $1 and (${LOGIN_IS_FREE} or login_run_id = $2) and ${IS_CLAIM} returning 1`,
    values: [credentialId, runId, epoch, lifetimeMs],
  });
  if (rows.length > 0) return "taken";
  const [now] = await db.query<{ isThere: boolean; isClaim: boolean; isLine: boolean }>({
    name: "find_login",
    text: `select exists (select from credential where id = $1) as "isThere", ${IS_CLAIM} as "isClaim",
      exists (select from run where ${STANDS_FOR("$1")}) as "isLine"`,
    values: [credentialId, runId, epoch],
  });
  if (now?.isClaim !== true) return "lost";
  // With a deleted credential there is nothing to wait for: the caller finds it missing.
  if (!now.isThere) return "taken";
  return now.isLine ? "line" : "busy";
}

/** Reserves the lock for this caller, which is not a run, at its next release: queued runs would leave no gap. */
export async function reserveLogin(db: Database, credentialId: string, holder: string): Promise<void> {
  await db.query(`update credential set login_next = $2 where id = $1`, [credentialId, holder]);
}

/**
 * Releases the lock, unless another worker has the run by now and thus the lock. It passes to the reserved caller or to the first queued
 * run, which may be admitted again; returns the account of that run.
 */
export async function releaseLogin(
  db: Database,
  credentialId: string,
  { runId, epoch }: LoginClaim,
): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "release_login",
    text: `with held as (
        select id, login_next from credential where id = $1 and login_run_id = $2 and ${IS_CLAIM} for no key update
      ), free as (
        select id from held where login_next is null
      ), ${CALL_TO_LOG_IN("$4")}, released as (
        update credential set login_run_id = held.login_next, login_next = null,
          login_until = case when held.login_next is not null then app_now() + $4::bigint * interval '1 ms' end
        from held where credential.id = held.id and not exists (select from called)
      )
      select account_id as "accountId" from called`,
    values: [credentialId, runId, epoch, limits.loginTurnMs],
  });
  return rows.map(({ accountId }) => accountId);
}
