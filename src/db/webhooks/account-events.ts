import type { Database } from "#db/connection/pool.ts";
import { withTimes } from "./webhook-deliveries.ts";
import type { WebhookEvent } from "#domain/webhook.ts";

export type AccountEvent = WebhookEvent & { readonly accountId: string };

/** From now on events of these accounts are written although no endpoint wants them, for `forMs`. */
export async function listenToAccounts(
  db: Database,
  accountIds: readonly string[],
  forMs: number,
): Promise<void> {
  await db.query(
    `insert into event_listener (account_id, ends_at)
     select id, app_now() + $2::float8 * interval '1 ms' from unnest($1::text[]) id order by id
     on conflict (account_id) do update set ends_at = excluded.ends_at`,
    [accountIds, forMs],
  );
}

/** The place in the order of events of what happens at this time before now: their ids begin with the time. */
export async function findEventPlace(db: Database, agoMs: number): Promise<string> {
  const rows = await db.query<{ place: string }>(
    `select 'msg_' || lpad(to_hex((extract(epoch from app_now()) * 1000 - $1::float8)::bigint), 12, '0') as place`,
    [agoMs],
  );
  return rows[0]?.place ?? "";
}

/** The events of these accounts after a place, or after an event's id, in their order. Without pings, which are for one endpoint. */
export async function listAccountEvents(
  db: Database,
  accountIds: readonly string[],
  after: string,
  limit: number,
): Promise<readonly AccountEvent[]> {
  const rows = await db.query<AccountEvent>(
    `select id, account_id as "accountId", type, occurred_at as "occurredAt", data from webhook_event
     where id > $2 and account_id = any($1) and type <> 'ping' order by id limit $3`,
    [accountIds, after, limit],
  );
  return rows.map(withTimes);
}

/** Writes an event for those who want it. Returns its id; null: nobody does. */
export async function insertEvent(
  tx: Database,
  event: {
    readonly accountId: string;
    readonly type: string;
    readonly subjectId: string;
    readonly data: Readonly<Record<string, unknown>>;
  },
): Promise<string | null> {
  const rows = await tx.query<{ id: string | null }>(`select note_event($1, $2, $3, $4::jsonb) as id`, [
    event.accountId,
    event.type,
    event.subjectId,
    JSON.stringify(event.data),
  ]);
  return rows[0]?.id ?? null;
}
