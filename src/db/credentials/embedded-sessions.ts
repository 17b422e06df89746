import type { EmbeddedSession } from "#domain/embedded-session.ts";
import type { StoredSession } from "./credential-sessions.ts";
import type { Database } from "#db/connection/pool.ts";

export interface StoredEmbeddedSession extends EmbeddedSession {
  readonly accountId: string;
  readonly name: string | null;
  readonly locale: string | null;
  /** Time until it expires; negative afterwards. */
  readonly remainingMs: number;
}

// `expired` is decided here, by the database's clock at the instant of reading (docs/decisions/0017).
const COLUMNS = `flow.id, flow.account_id as "accountId", flow.origin, flow.blueprint_keys as "blueprintKeys",
  flow.selected_blueprint_key as "selectedBlueprintKey", flow.name, flow.locale, flow.credential_id as "credentialId",
  flow.created_at as "createdAt", flow.expires_at as "expiresAt", flow.completed_at as "completedAt",
  (extract(epoch from flow.expires_at - app_now()) * 1000)::float8 as "remainingMs",
  case when flow.status = 'pending' and flow.expires_at <= app_now() then 'expired' else flow.status end as "status",
  (select coalesce(json_object_agg(slot.slot, slot.credential_id order by slot.slot_position), '{}')
    from credential_session slot where slot.account_id = flow.account_id and slot.embedded_session_id = flow.id
      and slot.blueprint_key = flow.selected_blueprint_key and slot.credential_id is not null) as "credentialIds"`;

export async function insertEmbeddedSession(
  db: Database,
  session: {
    readonly id: string;
    readonly accountId: string;
    readonly origin: string;
    readonly blueprintKeys: readonly string[];
    readonly name: string | null;
    readonly locale: string | null;
    readonly lifetimeMs: number;
  },
): Promise<void> {
  await db.query(
    `insert into embedded_credential_session (id, account_id, origin, blueprint_keys, name, locale, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, app_now(), app_now() + $7::bigint * interval '1 ms')`,
    [
      session.id,
      session.accountId,
      session.origin,
      session.blueprintKeys,
      session.name,
      session.locale,
      session.lifetimeMs,
    ],
  );
}

export async function findEmbeddedSession(
  db: Database,
  accountId: string,
  id: string,
): Promise<StoredEmbeddedSession | undefined> {
  const rows = await db.query<StoredEmbeddedSession>({
    name: "find_embedded_session",
    text: `select ${COLUMNS} from embedded_credential_session flow where flow.account_id = $1 and flow.id = $2`,
    values: [accountId, id],
  });
  return rows[0];
}

/** A session of any account: for the frame, which its client token authorises. */
export async function findEmbeddedSessionById(
  db: Database,
  id: string,
): Promise<StoredEmbeddedSession | undefined> {
  const rows = await db.query<StoredEmbeddedSession>(
    `select ${COLUMNS} from embedded_credential_session flow where flow.id = $1`,
    [id],
  );
  return rows[0];
}

export interface NewSlot {
  readonly sessionId: string;
  readonly tokenLookup: Uint8Array;
  readonly slot: string;
  readonly strategyId: string;
  readonly strategyVersion: number;
}

/**
 * Selects the Blueprint of a pending flow, and creates a session for each of its slots without one. The selection is final once a
 * credential was created for it. False: it can no longer be selected.
 */
export async function selectBlueprint(
  db: Database,
  flow: { readonly accountId: string; readonly id: string; readonly blueprintKey: string },
  slots: readonly NewSlot[],
): Promise<boolean> {
  const rows = await db.query(
    `update embedded_credential_session flow set selected_blueprint_key = $3
     where account_id = $1 and id = $2 and status = 'pending' and expires_at > app_now() and $3 = any (blueprint_keys)
       and not exists (select from credential_session slot where slot.embedded_session_id = flow.id
         and slot.blueprint_key <> $3 and slot.credential_id is not null)
     returning 1`,
    [flow.accountId, flow.id, flow.blueprintKey],
  );
  if (rows.length === 0) return false;
  await db.query(
    `insert into credential_session (id, account_id, strategy_id, strategy_version, name, token_lookup, created_at, expires_at,
       embedded_session_id, blueprint_key, slot, slot_position)
     select given.id, flow.account_id, given.strategy_id, given.strategy_version, flow.name, given.token_lookup, app_now(),
       flow.expires_at, flow.id, $3, given.slot, given.position
     from embedded_credential_session flow,
       unnest($4::text[], $5::bytea[], $6::text[], $7::text[], $8::int[]) with ordinality
         as given(id, token_lookup, slot, strategy_id, strategy_version, position)
     where flow.account_id = $1 and flow.id = $2
       and not exists (select from credential_session made where made.embedded_session_id = flow.id and made.blueprint_key = $3)`,
    [
      flow.accountId,
      flow.id,
      flow.blueprintKey,
      slots.map((slot) => slot.sessionId),
      slots.map((slot) => slot.tokenLookup),
      slots.map((slot) => slot.slot),
      slots.map((slot) => slot.strategyId),
      slots.map((slot) => slot.strategyVersion),
    ],
  );
  return true;
}

/** Locks a flow for the credential of one of its slots. False: it is not pending, has expired, or has another Blueprint. */
export async function lockForSlot(db: Database, slot: StoredSession): Promise<boolean> {
  const rows = await db.query(
    `select 1 from embedded_credential_session
     where account_id = $1 and id = $2 and selected_blueprint_key = $3 and status = 'pending' and expires_at > app_now()
     for update`,
    [slot.accountId, slot.embeddedSessionId, slot.blueprintKey],
  );
  return rows.length > 0;
}

/** Completes a flow whose slots are all collected; its lock must be held. */
export async function completeEmbeddedSession(db: Database, slot: StoredSession): Promise<void> {
  await db.query(
    `update embedded_credential_session flow set status = 'completed', completed_at = app_now(),
       credential_id = (select first.credential_id from credential_session first
         where first.embedded_session_id = flow.id and first.blueprint_key = flow.selected_blueprint_key
         order by first.slot_position limit 1)
     where account_id = $1 and id = $2 and status = 'pending' and not exists (
       select from credential_session open where open.embedded_session_id = flow.id
         and open.blueprint_key = flow.selected_blueprint_key and open.credential_id is null)`,
    [slot.accountId, slot.embeddedSessionId],
  );
}

/** Counts a submitted form. False: the limit is reached. */
export async function countSubmit(
  db: Database,
  flow: { readonly accountId: string; readonly id: string },
  submitsMax: number,
): Promise<boolean> {
  const rows = await db.query(
    `update embedded_credential_session set submits = submits + 1
     where account_id = $1 and id = $2 and submits < $3 returning 1`,
    [flow.accountId, flow.id, submitsMax],
  );
  return rows.length > 0;
}

/**
 * Marks some flows that expired before completion as recorded, and returns them. Part of a transaction.
 */
export async function noteExpiredFlows(
  tx: Database,
  limit: number,
): Promise<
  readonly {
    readonly id: string;
    readonly accountId: string;
    readonly origin: string;
    readonly blueprints: number;
  }[]
> {
  return await tx.query<{ id: string; accountId: string; origin: string; blueprints: number }>(
    `update embedded_credential_session set expiry_noted_at = app_now()
     where id in (select id from embedded_credential_session
       where status = 'pending' and expiry_noted_at is null and expires_at <= app_now()
       order by expires_at limit $1 for no key update skip locked)
     returning id, account_id as "accountId", origin, cardinality(blueprint_keys) as blueprints`,
    [limit],
  );
}
