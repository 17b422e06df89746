import type { Database } from "#db/connection/pool.ts";
import type { OperatorEventType } from "#domain/webhook.ts";

/** A line of a mail: the number of events of a type in an account. */
export interface ToldEvents {
  /** Slug; null: an endpoint of the operators. */
  readonly account: string | null;
  readonly type: OperatorEventType;
  readonly total: number;
}

/** From now on operators' events are written, for `forMs`. */
export async function listenForMail(db: Database, forMs: number): Promise<void> {
  await db.query({
    name: "listen_for_mail",
    text: `insert into operator_mail (listens_until, told_until, due_at)
      values (app_now() + $1::float8 * interval '1 ms', 'msg_' || lpad(to_hex((extract(epoch from app_now()) * 1000)::bigint), 12, '0'), app_now())
      on conflict (singleton) do update set listens_until = excluded.listens_until
        where operator_mail.listens_until < excluded.listens_until - interval '1 minute'`,
    values: [forMs],
  });
}

/** A mail that this worker sends. */
export interface ClaimedMail {
  readonly toldUntil: string;
  /** The place in the order of events up to which it tells. */
  readonly tellsUntil: string;
}

/**
 * Claims the next mail, if it is due and there is something to tell. Events younger than `settleMs` wait: a transaction that began earlier
 * may end later. Another worker makes the next attempt after `leaseMs`, unless the result is recorded.
 */
export async function claimMail(
  db: Database,
  { settleMs, leaseMs }: { readonly settleMs: number; readonly leaseMs: number },
): Promise<ClaimedMail | undefined> {
  const rows = await db.query<ClaimedMail>({
    name: "claim_operator_mail",
    text: `with settled as (
        select 'msg_' || lpad(to_hex((extract(epoch from app_now()) * 1000 - $1::float8)::bigint), 12, '0') as place)
      update operator_mail set due_at = app_now() + $2::float8 * interval '1 ms' from settled
      where due_at <= app_now() and exists (select from webhook_event
        where account_id is null and type like 'operator.%' and id > told_until and id <= place)
      returning told_until as "toldUntil", place as "tellsUntil"`,
    values: [settleMs, leaseMs],
  });
  return rows[0];
}

/** The events of a mail, by account and type. */
export async function listToldEvents(db: Database, mail: ClaimedMail): Promise<readonly ToldEvents[]> {
  return await db.query<ToldEvents>(
    `select data ->> 'account' as account, type, count(*)::int as total from webhook_event
     where account_id is null and type like 'operator.%' and id > $1 and id <= $2
     group by 1, 2 order by 1 nulls first, 2`,
    [mail.toldUntil, mail.tellsUntil],
  );
}

/** The mail was sent; the next one comes after `everyMs` at the earliest. */
export async function noteMailSent(db: Database, mail: ClaimedMail, everyMs: number): Promise<void> {
  await db.query(
    `update operator_mail set told_until = greatest(told_until, $1), sent_at = app_now(), failing_since = null, failure = null,
       due_at = app_now() + $2::float8 * interval '1 ms'`,
    [mail.tellsUntil, everyMs],
  );
}

/** The mail was not sent; the next attempt is made after `retryMs`. True: the last one had succeeded. */
export async function noteMailFailed(db: Database, failure: string, retryMs: number): Promise<boolean> {
  const rows = await db.query<{ isNew: boolean }>(
    `update operator_mail set failing_since = coalesce(failing_since, app_now()), failure = $1,
       due_at = app_now() + $2::float8 * interval '1 ms' returning failing_since = app_now() as "isNew"`,
    [failure, retryMs],
  );
  return rows[0]?.isNew === true;
}

/** How the mail to operators does. */
export interface MailState {
  readonly sentAt: Date | null;
  readonly failingSince: Date | null;
  readonly failure: string | null;
}

/** Undefined: no worker sends any. */
export async function readMailState(db: Database): Promise<MailState | undefined> {
  const rows = await db.query<MailState>(
    `select sent_at as "sentAt", failing_since as "failingSince", failure from operator_mail where listens_until > app_now()`,
  );
  return rows[0];
}
