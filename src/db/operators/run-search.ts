import type { Database } from "#db/connection/pool.ts";

export interface UnsearchedRun {
  readonly id: string;
  readonly name: Buffer | null;
  readonly metadata: Buffer;
}

/** A transaction may commit this long after the time of its rows. */
const OVERLAP = "interval '5 seconds'";
const HAS_TEXT = `purged_at is null and (name is not null or metadata <> '\\x7b7d')`;

/**
 * Runs whose text is not in run_search yet, oldest first. `sinceMs`: those before this time, in milliseconds since 1970, are known to be
 * in it; null: those before the time that was last noted.
 */
export async function listUnsearched(
  db: Database,
  sinceMs: number | null,
  limit: number,
): Promise<readonly UnsearchedRun[]> {
  return await db.query<UnsearchedRun>({
    name: "list_unsearched",
    // A clock that was set back gives new runs an earlier time.
    text: `select id, name, metadata from run
      where created_at >= least(app_now(), coalesce(timestamptz 'epoch' + $1::float8 * interval '1 ms',
          (select searched_to from run_search_progress))) - ${OVERLAP}
        and ${HAS_TEXT} and not exists (select from run_search where run_id = run.id)
      order by created_at, id limit $2`,
    values: [sinceMs, limit],
  });
}

interface RunText {
  readonly id: string;
  readonly text: string;
  readonly grams: readonly number[];
}

/** Stores the texts of runs, except of those that were purged in the meantime. */
export async function insertRunTexts(db: Database, runs: readonly RunText[]): Promise<void> {
  await db.query({
    name: "insert_run_texts",
    text: `with given as (
        select id, text, string_to_array(grams, ',', '')::int[] as grams
        from unnest($1::text[], $2::text[], $3::text[]) as given (id, text, grams)
      )
      insert into run_search (run_id, account_id, created_at, text, grams)
      select run.id, run.account_id, run.created_at, given.text, given.grams from given join run using (id) where ${HAS_TEXT}
      on conflict (run_id) do nothing`,
    values: [
      runs.map(({ id }) => id),
      runs.map(({ text }) => text),
      runs.map(({ grams }) => grams.join(",")),
    ],
  });
}

/** Forgets the texts of these runs that have been purged: a purge may overtake `insertRunTexts`. */
export async function deletePurgedTexts(db: Database, runIds: readonly string[]): Promise<void> {
  await db.query({
    name: "delete_purged_texts",
    text: `delete from run_search using run where run.id = run_id and run_id = any($1) and purged_at is not null`,
    values: [runIds],
  });
}

/**
 * `runId`: the last run that was read; null: all runs up to now. `isNew`: whether there were any; otherwise this is stored once a
 * minute. Gives the time up to which runs were read, in milliseconds since 1970.
 */
export async function noteSearched(db: Database, runId: string | null, isNew: boolean): Promise<number> {
  const rows = await db.query<{ ms: number }>({
    name: "note_searched",
    text: `with wanted as (
        select coalesce((select created_at from run where id = $1), app_now()) as at
      ), noted as (
        update run_search_progress set searched_to = wanted.at from wanted
        where wanted.at > searched_to and ($2 or wanted.at > searched_to + interval '1 minute')
      )
      select (extract(epoch from at) * 1000)::float8 as ms from wanted`,
    values: [runId, isNew],
  });
  return Number(rows[0]?.ms);
}

/** Among this many of the newest runs, frequent texts are found without the index. */
const NEWEST = 2_000;

/**
 * Runs of some accounts, or of all, whose text contains `line`, newest first. `grams` are its numbers; none: only the newest runs are
 * searched.
 */
export async function findRunsWith(
  db: Database,
  line: string,
  grams: readonly number[],
  accountIds: readonly string[] | null,
  limit: number,
): Promise<readonly string[]> {
  const newest = await db.query<{ id: string }>(
    `select run_id as id from (select run_id, created_at, text from run_search
       where $4::text[] is null or account_id = any($4) order by created_at desc, run_id desc limit $3) newest
     where position($1 in text) > 0 order by created_at desc, run_id desc limit $2`,
    [line, limit, NEWEST, accountIds],
  );
  if (newest.length === limit || grams.length === 0) return newest.map(({ id }) => id);
  const rows = await db.query<{ id: string }>(
    // Separate, so that the planner does not walk all runs, newest first, for a rare text.
    `with found as materialized (
       select run_id, created_at from run_search where grams @> $2::int[] and position($1 in text) > 0
         and ($4::text[] is null or account_id = any($4))
     )
     select run_id as id from found order by created_at desc, run_id desc limit $3`,
    [line, grams, limit, accountIds],
  );
  return rows.map(({ id }) => id);
}

export interface FoundThing {
  readonly kind: "credential" | "session" | "blueprint" | "strategy" | "account";
  readonly id: string;
  readonly account: string;
  readonly name: string | null;
  readonly strategy: string | null;
}

/** The newest credentials and sessions that are searched. */
const SEARCHED = 20_000;

/** Credentials, sessions, documents and accounts, of some accounts or of all, whose name or id contains `line`, a few of each kind. */
export async function findThings(
  db: Database,
  line: string,
  accountIds: readonly string[] | null,
  limit: number,
): Promise<readonly FoundThing[]> {
  const own = (column: string): string => `($4::text[] is null or ${column} = any($4))`;
  const has = (column: string): string => `position($1 in lower(${column})) > 0`;
  const newest = (table: string): string => `(
      select id, account_id, strategy_id, name from ${table} where ${own("account_id")}
      order by created_at desc, id desc limit $3) newest`;
  const ofTable = (kind: string, table: string): string => `
    (select '${kind}' as kind, newest.id, account.slug as account, newest.name, newest.strategy_id as strategy
     from ${newest(table)} join account on account.id = newest.account_id
     where ${has("coalesce(newest.name, '')")} or ${has("newest.id")} limit $2)`;
  return await db.query<FoundThing>(
    `${ofTable("credential", "credential")} union all ${ofTable("session", "credential_session")} union all
    (select 'blueprint', key, account.slug, null, null from blueprint join account on account.id = account_id
     where ${has("key")} and ${own("account_id")} order by 2 limit $2) union all
    (select 'strategy', strategy.id, account.slug, null, null from strategy join account on account.id = account_id
     where ${has("strategy.id")} and ${own("account_id")} order by 2 limit $2) union all
    (select 'account', slug, slug, name, null from account where (${has("slug")} or ${has("name")}) and ${own("id")} order by 2 limit $2)`,
    [line, limit, SEARCHED, accountIds],
  );
}
