import type { Database } from "#db/connection/pool.ts";
import type { DisabledReason } from "#domain/webhook.ts";

export interface WebhookEndpoint {
  readonly id: string;
  /** Slug; null: it is of the operators. */
  readonly account: string | null;
  readonly url: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly createdAt: Date;
  readonly disabledAt: Date | null;
  readonly disabledReason: DisabledReason | null;
  /** Every attempt has failed since; null: the last one succeeded, or there was none. */
  readonly failingSince: Date | null;
  /** Until when deliveries are also signed with the previous secret; null: only with the current one. */
  readonly previousSecretEndsAt: Date | null;
  /** Without one, its deliveries wait. */
  readonly hasSecret: boolean;
  /** The account's document has it, and alone changes it. */
  readonly isFromDocument: boolean;
}

/** How the newest deliveries of an endpoint went. */
export interface EndpointActivity {
  readonly endpointId: string;
  /** Not delivered yet, and not given up; counted up to a limit. */
  readonly waiting: number;
  readonly delivered: number;
  readonly givenUp: number;
  /** Null: none of them. */
  readonly lastDeliveredAt: Date | null;
}

export type StoredEndpoint = WebhookEndpoint & { readonly accountId: string | null };

const COLUMNS = `endpoint.id, account.slug as account, endpoint.url, endpoint.description, endpoint.events,
  endpoint.created_at as "createdAt", endpoint.disabled_at as "disabledAt", endpoint.disabled_reason as "disabledReason",
  endpoint.failing_since as "failingSince",
  (select max(ends_at) from webhook_secret where endpoint_id = endpoint.id and ends_at > app_now()) as "previousSecretEndsAt",
  exists (select from webhook_secret where endpoint_id = endpoint.id) as "hasSecret", endpoint.is_from_document as "isFromDocument"`;

/** The endpoints of some accounts, or of all. */
export async function listWebhookEndpoints(
  db: Database,
  accountIds: readonly string[] | null,
): Promise<readonly WebhookEndpoint[]> {
  return await db.query<WebhookEndpoint>(
    `select ${COLUMNS} from webhook_endpoint endpoint left join account on account.id = endpoint.account_id
     where $1::text[] is null or endpoint.account_id = any($1) order by account.slug nulls first, endpoint.id`,
    [accountIds],
  );
}

/** Of the newest `among` deliveries of each endpoint, whose events' ids are in the order of time. */
export async function listEndpointActivity(
  db: Database,
  endpointIds: readonly string[],
  { among, waitingMax }: { readonly among: number; readonly waitingMax: number },
): Promise<readonly EndpointActivity[]> {
  return await db.query<EndpointActivity>(
    `select given.id as "endpointId", newest.delivered, newest."givenUp", newest."lastDeliveredAt", waiting.total as waiting
     from unnest($1::text[]) as given(id)
       cross join lateral (select count(delivered_at)::int as delivered, count(failed_at)::int as "givenUp",
           max(delivered_at) as "lastDeliveredAt"
         from (select delivered_at, failed_at from webhook_delivery where endpoint_id = given.id
           order by event_id desc limit $2) one) newest
       cross join lateral (select count(*)::int as total from (select from webhook_delivery
         where endpoint_id = given.id and due_at is not null limit $3) one) waiting`,
    [endpointIds, among, waitingMax],
  );
}

export async function findWebhookEndpoint(db: Database, id: string): Promise<StoredEndpoint | undefined> {
  const rows = await db.query<StoredEndpoint>(
    `select ${COLUMNS}, endpoint.account_id as "accountId"
     from webhook_endpoint endpoint left join account on account.id = endpoint.account_id where endpoint.id = $1`,
    [id],
  );
  return rows[0];
}

/** Of an account; null: of the operators. */
export async function countWebhookEndpoints(db: Database, accountId: string | null): Promise<number> {
  const rows = await db.query<{ total: number }>(
    `select count(*)::int as total from webhook_endpoint where account_id is not distinct from $1`,
    [accountId],
  );
  return rows[0]?.total ?? 0;
}

export async function insertWebhookEndpoint(
  db: Database,
  endpoint: Pick<StoredEndpoint, "id" | "accountId" | "url" | "description" | "events" | "isFromDocument">,
): Promise<void> {
  const { id, accountId, url, description, events, isFromDocument } = endpoint;
  await db.query(
    `insert into webhook_endpoint (id, account_id, url, description, events, is_from_document) values ($1, $2, $3, $4, $5, $6)`,
    [id, accountId, url, description, events, isFromDocument],
  );
}

/** Changes what an endpoint gets, its description, and where it is: another address has not failed yet. */
export async function updateWebhookEndpoint(
  tx: Database,
  id: string,
  { description, events, url }: Pick<StoredEndpoint, "description" | "events" | "url">,
): Promise<void> {
  await tx.query(
    `update webhook_endpoint set description = $2, events = $3, url = $4,
       failing_since = case when url = $4 then failing_since end where id = $1`,
    [id, description, events, url],
  );
}

/** Makes an endpoint as its account's document has it. */
export async function adoptWebhookEndpoint(
  tx: Database,
  id: string,
  { description, events }: Pick<StoredEndpoint, "description" | "events">,
): Promise<void> {
  await tx.query(
    `update webhook_endpoint set description = $2, events = $3, is_from_document = true where id = $1`,
    [id, description, events],
  );
}

/** Deletes an endpoint with its secrets. Housekeeping deletes the log of its deliveries, which may be in use. */
export async function dropWebhookEndpoint(tx: Database, id: string): Promise<void> {
  await tx.query(`delete from webhook_secret where endpoint_id = $1`, [id]);
  await tx.query(`delete from webhook_endpoint where id = $1`, [id]);
}

/** A signing secret as it is stored. */
export interface SealedWebhookSecret {
  readonly id: string;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

/** Stores an endpoint's new secret; earlier ones end after `overlapMs`, those that end sooner keep their time. */
export async function insertWebhookSecret(
  tx: Database,
  of: { readonly accountId: string | null; readonly endpointId: string },
  secret: SealedWebhookSecret,
  overlapMs: number,
): Promise<void> {
  await tx.query(
    `update webhook_secret set ends_at = least(ends_at, app_now() + $2::float8 * interval '1 ms') where endpoint_id = $1`,
    [of.endpointId, overlapMs],
  );
  await tx.query(`delete from webhook_secret where endpoint_id = $1 and ends_at <= app_now()`, [
    of.endpointId,
  ]);
  await tx.query(
    `insert into webhook_secret (id, account_id, endpoint_id, sealed, kid) values ($1, $2, $3, $4, $5)`,
    [secret.id, of.accountId, of.endpointId, secret.sealed, secret.kid],
  );
}

/** The secrets that an endpoint's deliveries are signed with, the current one first. */
export async function listWebhookSecrets(
  db: Database,
  endpointId: string,
): Promise<readonly SealedWebhookSecret[]> {
  return await db.query<SealedWebhookSecret>(
    `select id, sealed, kid from webhook_secret where endpoint_id = $1 and (ends_at is null or ends_at > app_now())
     order by ends_at desc nulls first, id desc`,
    [endpointId],
  );
}

/** False: it already was disabled, or does not exist. */
export async function disableWebhookEndpoint(
  db: Database,
  id: string,
  reason: DisabledReason,
): Promise<boolean> {
  const rows = await db.query(
    `update webhook_endpoint set disabled_at = app_now(), disabled_reason = $2 where id = $1 and disabled_at is null returning 1`,
    [id, reason],
  );
  return rows.length > 0;
}

/** False: it already was enabled, or does not exist. */
export async function enableWebhookEndpoint(db: Database, id: string): Promise<boolean> {
  const rows = await db.query(
    `update webhook_endpoint set disabled_at = null, disabled_reason = null, failing_since = null
     where id = $1 and disabled_at is not null returning 1`,
    [id],
  );
  return rows.length > 0;
}

/** Deletes an endpoint with its secrets and the log of its deliveries. False: it does not exist. */
export async function deleteWebhookEndpoint(tx: Database, id: string): Promise<boolean> {
  await tx.query(`delete from webhook_secret where endpoint_id = $1`, [id]);
  await tx.query(`delete from webhook_attempt where endpoint_id = $1`, [id]);
  await tx.query(`delete from webhook_delivery where endpoint_id = $1`, [id]);
  return (await tx.query(`delete from webhook_endpoint where id = $1 returning 1`, [id])).length > 0;
}

/** Tells the account's other endpoints that this one was disabled. */
export async function noteEndpointDisabled(
  tx: Database,
  endpoint: Pick<StoredEndpoint, "id" | "accountId">,
  reason: DisabledReason,
): Promise<void> {
  if (endpoint.accountId === null) return;
  await tx.query(
    `select note_event($1, 'webhook.disabled', $2, jsonb_build_object('id', $2::text, 'reason', $3::text))`,
    [endpoint.accountId, endpoint.id, reason],
  );
}
