import type pg from "pg";
import type { Database } from "#db/connection/pool.ts";
import { copied, listTables, quoted, SAME_FORMS, type CopiedTable } from "./tables.ts";
import { copyIn } from "./copy.ts";

const WHOLE_TABLES_MS = 3_600_000;

/** The schema of a database into which a backup may be loaded. */
export interface Loading {
  /** Loads the rows of a table, in COPY's text format. Returns their number. */
  loadRows(table: Pick<CopiedTable, "name" | "columns">, rows: AsyncIterable<Uint8Array>): Promise<number>;
  setSequence(name: string, lastValue: string): Promise<void>;
  /** Those of these objects to which no loaded row refers. */
  listUnnamed(keys: readonly string[]): Promise<ReadonlySet<string>>;
  countObjects(): Promise<number>;
}

/** Tables that have rows as soon as anything was done with a database. Migrations themselves insert rows into others. */
const FIRST_USED = ["installation", "vault_key", "operator", "account"];

/** A table that shows that the database is in use. Undefined: it has no tables yet, or nothing was done with them. */
export async function findUsedTable(db: Database): Promise<string | undefined> {
  const tables = await db.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' and tablename = any($1) order by 1`,
    [FIRST_USED],
  );
  for (const { name } of tables)
    if ((await db.query(`select 1 from public.${quoted(name)} limit 1`)).length > 0) return name;
  return undefined;
}

/**
 * Drops the indexes that no constraint has, and returns the statements that create them again: an index of all rows at once is cheaper than
 * each row in the index.
 */
async function dropIndexes(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string; create: string }>(
    `select format('public.%I', relname) as name, pg_get_indexdef(indexrelid) as create
     from pg_index join pg_class on pg_class.oid = indexrelid
     where relnamespace = 'public'::regnamespace and indrelid in (select oid from pg_class where relkind = 'r')
       and not exists (select from pg_constraint where conindid = indexrelid)
     order by relname`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.map(({ create }) => create);
}

/** Loads rows in one transaction, as the owner of the tables: if `work` throws, there are none. */
export async function loading<T>(owner: Database, work: (load: Loading) => Promise<T>): Promise<T> {
  const client = await owner.pool.connect();
  let isWhole = false;
  try {
    await client.query("begin");
    await client.query(SAME_FORMS);
    const known = new Map((await listTables(client)).map((table) => [table.name, table]));
    const indexes = await dropIndexes(client);
    const done = await work({
      loadRows: async ({ name, columns }, rows) => {
        const table = known.get(name);
        const unknown = columns.find((column) => table?.columns.includes(column) !== true);
        if (table === undefined || unknown !== undefined)
          throw new Error(
            `The schema has no ${table === undefined ? "table" : "column"} for ${name}.${unknown ?? ""}.`,
          );
        // What migrations insert is in the backup, as it was then.
        await client.query(`delete from public.${quoted(name)}`);
        return await copyIn(client, `copy ${copied({ name, columns })} from stdin`, rows);
      },
      setSequence: async (name, lastValue) =>
        void (await client.query("select setval(format('public.%I', $1::text)::regclass, $2::bigint)", [
          name,
          lastValue,
        ])),
      listUnnamed: async (keys) => {
        const { rows } = await client.query<{ key: string }>(
          `select stored.key from unnest($1::text[]) as stored (key) where not exists (select from blob where blob.key = stored.key)`,
          [keys],
        );
        return new Set(rows.map(({ key }) => key));
      },
      countObjects: async () => {
        const count = { text: "select count(*)::float8 as count from blob", query_timeout: WHOLE_TABLES_MS };
        return (await client.query<{ count: number }>(count)).rows[0]?.count ?? 0;
      },
    });
    for (const text of indexes) {
      const create = { text, query_timeout: WHOLE_TABLES_MS };
      await client.query(create);
    }
    // Deferred references are checked now, for all rows.
    const commit = { text: "commit", query_timeout: WHOLE_TABLES_MS };
    await client.query(commit);
    isWhole = true;
    return done;
  } finally {
    // The server rolls back.
    client.release(isWhole ? undefined : true);
  }
}
