import { given, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import type { Database } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";
import type { DeliveryState, WebhookEvent } from "#domain/webhook.ts";

/** A delivery that this worker makes an attempt of. */
export interface ClaimedDelivery extends WebhookEvent {
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** Attempts since the delivery was created or resent, this one included. */
  readonly tries: number;
  /** The time of the claim. */
  readonly beganAt: Date;
  /** For how long it has been due by then. */
  readonly dueForMs: number;
}

/** Deliveries that are made, and recorded, together. */
export interface DeliveryClaim {
  readonly id: string;
  readonly deliveries: readonly ClaimedDelivery[];
}

/**
 * Adds a job for each enabled endpoint with due deliveries that has none yet, at most `jobsMax` at a time, so that slow
 * endpoints leave room for other jobs. Endpoints that work come before those that fail. `waitedMs`: for how long a delivery must be due.
 */
export async function addDeliveryJobs(db: Database, jobsMax: number, waitedMs: number): Promise<void> {
  await db.query({
    name: "add_delivery_jobs",
    text: `with busy as (
        select key from graphile_worker.jobs
        where task_identifier = 'deliver_webhooks' and (locked_at is not null or attempts < max_attempts)),
      due as (
        select endpoint.id from webhook_endpoint endpoint
        where disabled_at is null and 'webhooks:' || endpoint.id not in (select key from busy)
          and exists (select from webhook_delivery where endpoint_id = endpoint.id and due_at <= app_now() - $2::float8 * interval '1 ms')
          and exists (select from webhook_secret where endpoint_id = endpoint.id)
        order by failing_since is not null, random() limit greatest(0, $1 - (select count(*) from busy)))
      select graphile_worker.add_job('deliver_webhooks', json_build_object('endpointId', id), job_key => 'webhooks:' || id)
      from due`,
    values: [jobsMax, waitedMs],
  });
}

export interface WantedDeliveries {
  readonly deliveriesMax: number;
  readonly waitedMs: number;
  readonly leaseMs: number;
  /** null: it is no member at the moment. */
  readonly workerId: string | null;
}

/**
 * Begins the next attempts of an endpoint's deliveries that have been due for `waitedMs`. Another worker makes them when this one is lost, or
 * after `leaseMs`, unless they are recorded; two workers that claim at the same moment may both make them. null: there are none.
 */
export async function claimDeliveries(
  db: Database,
  endpointId: string,
  wanted: WantedDeliveries,
): Promise<DeliveryClaim | null> {
  const rows = await db.query<ClaimedDelivery & { claimId: string }>({
    name: "claim_deliveries",
    // A delivery is not written to before it has been made: its lease is in the row of the claim.
    text: `with due as materialized (
        select event_id, attempts + 1 as attempt, tries + 1 as tries, due_at from webhook_delivery
        where endpoint_id = $1 and due_at <= app_now() - $3::float8 * interval '1 ms'
          and event_id <> all (array(select unnest(event_ids) from webhook_claim where endpoint_id = $1 and ends_at > app_now()
            and (worker_id is null or exists (select from worker where worker.id = worker_id))))
        order by due_at limit $2),
      claim as (
        insert into webhook_claim (endpoint_id, event_ids, ends_at, worker_id)
        select $1, array_agg(event_id), app_now() + $4::float8 * interval '1 ms', $5 from due having count(*) > 0 returning id)
      select claim.id::text as "claimId", event.id, event.type, event.occurred_at as "occurredAt", event.data, due.attempt, due.tries,
        app_now() as "beganAt", (extract(epoch from app_now() - due.due_at) * 1000)::float8 as "dueForMs"
      from claim cross join due
        -- By its key, also where the limit is not known and the planner would read all events instead.
        cross join lateral (select * from webhook_event where id = due.event_id offset 0) event`,
    values: [endpointId, wanted.deliveriesMax, wanted.waitedMs, wanted.leaseMs, wanted.workerId],
  });
  const id = rows[0]?.claimId;
  return id === undefined ? null : { id, deliveries: rows.map(withTimes) };
}

const TIMES: ReadonlySet<string> = new Set(["createdAt", "startedAt", "endedAt", "expiresAt", "completedAt"]);

/** Times in JSON are text. */
export function withTimes<Event extends WebhookEvent>(event: Event): Event {
  const data = Object.entries(event.data).map(([key, value]) =>
    TIMES.has(key) && typeof value === "string" ? [key, new Date(value)] : [key, value],
  );
  return { ...event, data: Object.fromEntries(data) };
}

/** What became of an attempt. */
export interface AttemptRecord {
  readonly eventId: string;
  readonly attempt: number;
  readonly beganAt: Date;
  readonly durationMs: number;
  /** null: there was no answer, for the reason in `failure`. */
  readonly status: number | null;
  readonly failure: string | null;
  /** The beginning of the answer's body. */
  readonly answer: string;
  readonly isDelivered: boolean;
  /** null: it was delivered, or is given up. */
  readonly nextInMs: number | null;
}

const ATTEMPT: Columns<AttemptRecord> = {
  event_id: ["text", ({ eventId }) => eventId],
  number: ["int", ({ attempt }) => attempt],
  began_at: ["timestamptz", ({ beganAt }) => beganAt],
  duration_ms: ["int", ({ durationMs }) => durationMs],
  status: ["int", ({ status }) => status],
  failure: ["text", ({ failure }) => failure],
  answer: ["text", ({ answer }) => answer],
  is_delivered: ["boolean", ({ isDelivered }) => isDelivered],
  next_in_ms: ["float8", ({ nextInMs }) => nextInMs],
};

/** Records the attempts of a claim and ends it, except for attempts that another worker has made meanwhile. */
export async function recordAttempts(
  db: Database,
  endpointId: string,
  claimId: string,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  await db.query({
    name: "record_attempts",
    text: `with ended as (delete from webhook_claim where id = $2::bigint),
      made as (
        update webhook_delivery delivery set attempts = number, tries = delivery.tries + 1,
          delivered_at = case when is_delivered then app_now() end,
          failed_at = case when not is_delivered and next_in_ms is null then app_now() end,
          due_at = case when not is_delivered then app_now() + next_in_ms * interval '1 ms' end
        from ${given("attempt", ATTEMPT, 3)}
        where delivery.endpoint_id = $1 and delivery.event_id = attempt.event_id and delivery.attempts = number - 1
        returning attempt.*)
      insert into webhook_attempt (endpoint_id, event_id, number, began_at, duration_ms, status, failure, answer)
      select $1, event_id, number, began_at, duration_ms, status, failure, answer from made`,
    values: [endpointId, claimId, ...valuesOf(ATTEMPT, attempts)],
  });
}

/** For how long the oldest event has been due that an endpoint which works should have got. 0: there is none. */
export async function readDeliveryLag(db: Database): Promise<number> {
  const [row] = await db.query<{ lagMs: number }>({
    name: "read_delivery_lag",
    text: `select greatest(max(extract(epoch from app_now() - due_at) * 1000), 0)::float8 as "lagMs"
      from webhook_endpoint endpoint cross join lateral (
        select min(due_at) as due_at from webhook_delivery where endpoint_id = endpoint.id and due_at is not null) oldest
      where disabled_at is null and failing_since is null
        and exists (select from webhook_secret where endpoint_id = endpoint.id)`,
  });
  return row?.lagMs ?? 0;
}

/** Notes whether an endpoint works. Returns how long it has been failing, in milliseconds; null: it works. */
export async function noteEndpointHealth(
  db: Database,
  endpointId: string,
  works: boolean,
): Promise<number | null> {
  const rows = await db.query<{ failingMs: number | null }>(
    `update webhook_endpoint set failing_since = case when $2 then null else coalesce(failing_since, app_now()) end
     where id = $1 returning (extract(epoch from app_now() - failing_since) * 1000)::float8 as "failingMs"`,
    [endpointId, works],
  );
  return rows[0]?.failingMs ?? null;
}

export interface ListedDelivery {
  readonly eventId: string;
  readonly type: string;
  readonly subjectId: string;
  /** Null: it is no run, or has no name. */
  readonly subjectName: string | null;
  readonly occurredAt: Date;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** When the next attempt is due; null: there is none. */
  readonly nextAttemptAt: Date | null;
  /** Of the last recorded attempt; null: there was none, or it had no answer. */
  readonly lastStatus: number | null;
  readonly lastFailure: string | null;
  readonly lastDurationMs: number | null;
}

const STATE = `case when delivered_at is not null then 'delivered' when failed_at is not null then 'failed' else 'pending' end`;

/** The deliveries of an endpoint, newest first. `afterEventId`: the last event of the previous page. */
export async function listDeliveries(
  db: Database,
  endpointId: string,
  page: {
    readonly state: DeliveryState | null;
    readonly afterEventId: string | null;
    readonly limit: number;
  },
): Promise<readonly ListedDelivery[]> {
  return await db.query<ListedDelivery>(
    `select event.id as "eventId", event.type, event.subject_id as "subjectId", event.occurred_at as "occurredAt",
       case when event.type like 'run.%' then (select convert_from(name, 'UTF8') from run where id = event.subject_id) end as "subjectName",
       ${STATE} as state, delivery.attempts, delivery.due_at as "nextAttemptAt",
       last.status as "lastStatus", last.failure as "lastFailure", last.duration_ms as "lastDurationMs"
     from webhook_delivery delivery join webhook_event event on event.id = delivery.event_id
       left join lateral (select status, failure, duration_ms from webhook_attempt
         where endpoint_id = delivery.endpoint_id and event_id = delivery.event_id order by number desc limit 1) last on true
     where delivery.endpoint_id = $1 and ($2::text is null or ${STATE} = $2)
       and ($3::text is null or delivery.event_id < $3)
     order by delivery.event_id desc limit $4`,
    [endpointId, page.state, page.afterEventId, page.limit],
  );
}

export interface ListedAttempt {
  readonly number: number;
  readonly beganAt: Date;
  readonly durationMs: number;
  readonly status: number | null;
  readonly failure: string | null;
  readonly answer: string;
}

/** One delivery with its event's content and all recorded attempts. */
export async function findDelivery(
  db: Database,
  endpointId: string,
  eventId: string,
): Promise<{ readonly event: WebhookEvent; readonly attempts: readonly ListedAttempt[] } | undefined> {
  const [event] = await db.query<WebhookEvent>(
    `select event.id, event.type, event.occurred_at as "occurredAt", event.data
     from webhook_delivery delivery join webhook_event event on event.id = delivery.event_id
     where delivery.endpoint_id = $1 and delivery.event_id = $2`,
    [endpointId, eventId],
  );
  if (event === undefined) return undefined;
  const attempts = await db.query<ListedAttempt>(
    `select number, began_at as "beganAt", duration_ms as "durationMs", status, failure, answer from webhook_attempt
     where endpoint_id = $1 and event_id = $2 order by number`,
    [endpointId, eventId],
  );
  return { event: withTimes(event), attempts };
}

/** Makes a delivery due again, under the same event id. False: there is no such delivery. */
export async function resendDelivery(db: Database, endpointId: string, eventId: string): Promise<boolean> {
  const rows = await db.query(
    `update webhook_delivery set due_at = app_now(), tries = 0, delivered_at = null, failed_at = null
     where endpoint_id = $1 and event_id = $2 returning 1`,
    [endpointId, eventId],
  );
  return rows.length > 0;
}

/** Makes all deliveries due again that were given up since a time (ISO 8601). Returns how many. */
export async function resendFailed(db: Database, endpointId: string, since: string): Promise<number> {
  const rows = await db.query(
    `update webhook_delivery set due_at = app_now(), tries = 0, failed_at = null
     where endpoint_id = $1 and failed_at >= $2::timestamptz returning 1`,
    [endpointId, since],
  );
  return rows.length;
}

/** Sends a `ping` to one endpoint, whatever it subscribes to. Returns the event's id. */
export async function insertPing(
  tx: Database,
  endpoint: { readonly id: string; readonly accountId: string | null },
): Promise<string> {
  const [event] = await tx.query<{ id: string }>(
    `insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
     values (new_event_id(), $1, 'ping', $2, app_now(), jsonb_build_object('id', $2::text)) returning id`,
    [endpoint.accountId, endpoint.id],
  );
  const { id } = must(event, "an inserted event has an id");
  await tx.query(`insert into webhook_delivery (endpoint_id, event_id, due_at) values ($1, $2, app_now())`, [
    endpoint.id,
    id,
  ]);
  return id;
}

/** Deletes some old events with their deliveries and attempts. Returns how many events. */
export async function deleteOldEvents(db: Database, keptMs: number, limit: number): Promise<number> {
  return await db.transaction(
    async (tx) => {
      const old = await tx.query<{ id: string }>(
        `select id from webhook_event where id < 'msg_' || lpad(to_hex((extract(epoch from app_now()) * 1000 - $1::float8)::bigint), 12, '0')
       order by id limit $2`,
        [keptMs, limit],
      );
      const ids = [old.map(({ id }) => id)];
      if (old.length === 0) return 0;
      await tx.query(
        `delete from webhook_attempt using webhook_event event join webhook_endpoint endpoint on coalesce(endpoint.account_id, '') = coalesce(event.account_id, '')
       where event.id = any($1) and event_id = event.id and endpoint_id = endpoint.id`,
        ids,
      );
      await tx.query(
        `delete from webhook_delivery using webhook_event event join webhook_endpoint endpoint on coalesce(endpoint.account_id, '') = coalesce(event.account_id, '')
       where event.id = any($1) and event_id = event.id and endpoint_id = endpoint.id`,
        ids,
      );
      await tx.query(`delete from webhook_event where id = any($1)`, ids);
      return old.length;
    },
    { retry: true },
  );
}

/**
 * Deletes what deleted endpoints have left: events that were written, or attempts that ended, while their endpoint was being deleted.
 * References would prevent them, at the cost of every run. Also claims of lost workers. Returns how many rows.
 */
export async function deleteOrphanedDeliveries(db: Database): Promise<number> {
  let total = (await db.query(`delete from webhook_claim where ends_at <= app_now() returning 1`)).length;
  for (const table of ["webhook_delivery", "webhook_attempt"]) {
    // By the index from endpoint to endpoint, however many rows each has.
    const rows = await db.query(
      `with recursive named(id) as (
         select min(endpoint_id) from ${table}
         union all
         select (select min(endpoint_id) from ${table} where endpoint_id > named.id) from named where named.id is not null)
       delete from ${table} where endpoint_id in (
         select id from named where id is not null and not exists (select from webhook_endpoint where webhook_endpoint.id = named.id))
       returning 1`,
    );
    total += rows.length;
  }
  return total;
}
