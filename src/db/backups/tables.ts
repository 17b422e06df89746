import type pg from "pg";

/** A table of the schema, and those of its columns that are stored and not computed. */
export interface CopiedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** On disk, for a progress bar. */
  readonly bytes: number;
}

/**
 * Not copied: the list of migrations, which a restore makes itself; pictures of pages, which are shown for seconds; and the job queue's own
 * schema, whose jobs are chores of the service that any start makes again.
 */
const LEFT_OUT = ["schema_migration", "live_picture"];

/** All tables, each after those to which its rows refer. */
export async function listTables(client: pg.ClientBase): Promise<readonly CopiedTable[]> {
  const { rows: tables } = await client.query<CopiedTable>(
    `select c.relname as name, pg_table_size(c.oid)::float8 as bytes,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
         order by attnum) as columns
     from pg_class c where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all($1)
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
     order by relname`,
    [LEFT_OUT],
  );
  // Deferred references are checked at COMMIT, and those of a table to itself at the end of its COPY.
  const { rows: references } = await client.query<{ from: string; to: string }>(
    `select conrelid::regclass::text as from, confrelid::regclass::text as to from pg_constraint
     where contype = 'f' and connamespace = 'public'::regnamespace and not condeferrable and conrelid <> confrelid`,
  );
  const ordered: CopiedTable[] = [];
  const left = new Map(tables.map((table) => [table.name, table]));
  while (left.size > 0) {
    const next = [...left.values()].filter(
      ({ name }) => !references.some(({ from, to }) => unquoted(from) === name && left.has(unquoted(to))),
    );
    if (next.length === 0)
      throw new Error(`These tables refer to each other: ${[...left.keys()].join(", ")}.`);
    for (const table of next) left.delete(table.name);
    ordered.push(...next);
  }
  return ordered;
}

const unquoted = (name: string): string => name.replaceAll('"', "");

/** Both ends of a COPY write and read values in the same form, whatever the servers' defaults are. */
export const SAME_FORMS = `set local datestyle to 'ISO, YMD'; set local timezone to 'UTC'; set local intervalstyle to 'iso_8601';
  set local bytea_output to 'hex'; set local extra_float_digits to 1; set local search_path to public;
  set local statement_timeout to 0; set local lock_timeout to '60s'; set local idle_in_transaction_session_timeout to 0`;

/** A name in a statement. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const copied = ({ name, columns }: Pick<CopiedTable, "name" | "columns">): string =>
  `public.${quoted(name)} (${columns.map(quoted).join(", ")})`;
