import { ACCOUNT_CHECKS } from "./invariants-of-accounts.ts";
import { CREDENTIAL_CHECKS } from "./invariants-of-credentials.ts";
import { EFFECT_CHECKS } from "./invariants-of-effects.ts";
import { EVENT_CHECKS } from "./invariants-of-events.ts";
import { RUN_CHECKS } from "./invariants-of-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RowCheck } from "./row-check.ts";

/** All of them, in the order of the invariants. */
export const ROW_CHECKS: readonly RowCheck[] = [
  ...RUN_CHECKS,
  ...CREDENTIAL_CHECKS,
  ...EFFECT_CHECKS,
  ...EVENT_CHECKS,
  ...ACCOUNT_CHECKS,
].toSorted((a, b) => Number(a.invariant.slice(1)) - Number(b.invariant.slice(1)));

/** A large table may take long, but reading blocks nobody. */
const CHECK_MS = 3_600_000;

/** A snapshot of the whole database for the duration of the checks. The service may keep running. */
export async function inLongSnapshot<T>(db: Database, work: (tx: Database) => Promise<T>): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query(
      `set transaction isolation level repeatable read, read only;
       set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`,
    );
    return await work(tx);
  });
}

export interface Places {
  /** The first of them. */
  readonly places: readonly string[];
  readonly total: number;
}

/** The places where a check finds a violation, at most `shownMax`. */
export async function findPlaces(tx: Database, check: RowCheck, shownMax: number): Promise<Places> {
  const rows = await tx.query<{ place: string; total: number }>({
    text: `select place, count(*) over ()::int as total from (${check.find}) found order by place limit ${shownMax}`,
    timeoutMs: CHECK_MS,
  });
  return { places: rows.map(({ place }) => place), total: rows[0]?.total ?? 0 };
}

/** The Blueprint versions of completed runs whose results exist. */
export async function listVersionsWithResults(
  tx: Database,
): Promise<readonly { readonly accountId: string; readonly id: string; readonly version: number }[]> {
  return await tx.query<{ accountId: string; id: string; version: number }>({
    text: `select account_id as "accountId", blueprint_id as id, blueprint_version as version from run
      where status = 'completed' and purged_at is null and blueprint_id is not null group by 1, 2, 3`,
    timeoutMs: CHECK_MS,
  });
}

/** Completed runs whose result keys differ from those of their Blueprint, in its order. */
export async function findIncompleteResults(
  tx: Database,
  expected: readonly {
    readonly blueprintId: string;
    readonly version: number;
    readonly keys: readonly string[];
  }[],
  shownMax: number,
): Promise<Places> {
  const rows = await tx.query<{ place: string; total: number }>({
    text: `select 'run ' || run.id as place, count(*) over ()::int as total
      from run join unnest($1::text[], $2::int[], $3::text[]) as expected (blueprint_id, version, keys)
        on expected.blueprint_id = run.blueprint_id and expected.version = run.blueprint_version
      where run.status = 'completed' and run.purged_at is null
        and coalesce((select jsonb_agg(key order by ordinal) from run_result where run_id = run.id), '[]')
          <> expected.keys::jsonb
      order by run.id limit $4`,
    values: [
      expected.map(({ blueprintId }) => blueprintId),
      expected.map(({ version }) => version),
      expected.map(({ keys }) => JSON.stringify(keys)),
      shownMax,
    ],
    timeoutMs: CHECK_MS,
  });
  return { places: rows.map(({ place }) => place), total: rows[0]?.total ?? 0 };
}

export interface StoredObject {
  readonly key: string;
  readonly purpose: string;
  readonly runId: string | null;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
}

/** The objects that the store must have, in batches, in the order of their keys. */
export async function* eachStoredObject(
  db: Database,
  limit: number,
): AsyncGenerator<readonly StoredObject[]> {
  let after = "";
  for (;;) {
    const rows = await db.query<StoredObject>(
      `select key, purpose, run_id as "runId", size_bytes as "sizeBytes", sha256 from blob
       where key > $1 order by key limit $2`,
      [after, limit],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = last.key;
  }
}

export async function countStoredObjects(db: Database): Promise<number> {
  const rows = await db.query<{ count: number }>({
    text: `select count(*) as count from blob`,
    timeoutMs: CHECK_MS,
  });
  return rows[0]?.count ?? 0;
}

/** Whether a row still refers to an object: an object that was purged in the meantime is not reported. */
export async function isObjectNamed(db: Database, key: string): Promise<boolean> {
  return (await db.query(`select 1 from blob where key = $1`, [key])).length > 0;
}

/** Returns those of these runs that have been purged. */
export async function listPurgedRuns(db: Database, runIds: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ id: string }>(
    `select id from run where id = any($1) and purged_at is not null`,
    [runIds],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Returns those of these credentials that exist. */
export async function listPresentCredentials(
  db: Database,
  ids: readonly string[],
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(`select id from credential where id = any($1) order by id`, [
    ids,
  ]);
  return rows.map(({ id }) => id);
}
