import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "#db/connection/pool.ts";

export const MIGRATIONS = join(import.meta.dirname, "../../src/db/migrations");
/** A folder an installation. */
export const FIXTURES = join(import.meta.dirname, "../fixtures/upgrade");

/**
 * A database as text: `schema.sql` is what made its tables, `rows/` has a file a table with a row a line, and `sequences.json` says
 * where its sequences stand. Nothing of it depends on the program's migrations of a later day.
 */
const places = (folder: string) => ({
  schema: join(folder, "schema.sql"),
  rows: join(folder, "rows"),
  sequences: join(folder, "sequences.json"),
});

const SCHEMAS = ["public", "graphile_worker"];
const HEADING = "-- What was executed, statement by statement, to make the schema.\n";

interface Sequence {
  readonly name: string;
  readonly value: string;
}

/** Runs `make` on an empty database; what it executes is the schema from then on. Queries and what has values don't count. */
export async function recordSchema(db: Database, make: () => Promise<unknown>): Promise<string> {
  const statements: string[] = [];
  db.pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    client.query = ((...given: unknown[]): unknown => {
      const [first, values] = given;
      const statement = first as string | { readonly text: string; readonly values?: unknown };
      const text = typeof statement === "string" ? statement : statement.text;
      const hasValues =
        Array.isArray(values) || (typeof statement !== "string" && statement.values !== undefined);
      if (!hasValues && !/^\s*(begin|commit|set|select)\b/i.test(text)) statements.push(text.trim());
      return query(...given);
    }) as typeof client.query;
  });
  await make();
  return [HEADING, ...statements.map((text) => (/;\s*$/.test(text) ? `${text}\n` : `${text};\n`))].join("\n");
}

/** Writes down a database that nobody uses just now. */
export async function freezeRows(db: Database, folder: string): Promise<void> {
  const { rows, sequences } = places(folder);
  mkdirSync(rows, { recursive: true });
  await db.transaction(async (tx) => {
    await tx.query("set transaction isolation level repeatable read, read only");
    await tx.query("set local time zone 'UTC'");
    for (const table of await listTables(tx)) {
      const lines = await tx.query<{ line: string }>(
        `select row_to_json(it)::text as line from ${table} it order by 1`,
      );
      if (lines.length > 0)
        writeFileSync(join(rows, `${table}.ndjson`), lines.map(({ line }) => `${line}\n`).join(""));
    }
    writeFileSync(sequences, `${JSON.stringify(await listSequences(tx), null, 2)}\n`);
  });
}

/** Makes the frozen database anew in an empty one. Only who may switch triggers off can: rows come in whatever order. */
export async function thaw(db: Database, folder: string): Promise<void> {
  const { schema, rows, sequences } = places(folder);
  await db.query(readFileSync(schema, "utf8"));
  await db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    for (const file of readdirSync(rows)) {
      const table = file.replace(/\.ndjson$/, "");
      const lines = readFileSync(join(rows, file), "utf8").trimEnd().split("\n");
      const columns = await listColumns(tx, table);
      await tx.query(
        `insert into ${table} (${columns}) overriding system value
         select ${columns} from json_populate_recordset(null::${table}, $1)`,
        [`[${lines.join(",")}]`],
      );
    }
    for (const { name, value } of JSON.parse(readFileSync(sequences, "utf8")) as readonly Sequence[])
      await tx.query("select setval($1, $2)", [name, value]);
  });
}

/** Removes all that a database has of ours. */
export async function empty(db: Database): Promise<void> {
  for (const schema of SCHEMAS) await db.query(`drop schema if exists ${schema} cascade`);
  await db.query("create schema public");
}

async function listTables(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ name: string }>(
    `select relnamespace::regnamespace || '.' || quote_ident(relname) as name from pg_class
     where relkind = 'r' and relnamespace::regnamespace::text = any($1) order by 1`,
    [SCHEMAS],
  );
  return rows.map(({ name }) => name);
}

/** Those that can be written to. */
async function listColumns(db: Database, table: string): Promise<string> {
  const rows = await db.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  return rows.map(({ name }) => name).join(", ");
}

/** Without those that were never asked. */
async function listSequences(db: Database): Promise<readonly Sequence[]> {
  return await db.query<Sequence>(
    `select schemaname || '.' || quote_ident(sequencename) as name, last_value::text as value from pg_sequences
     where schemaname = any($1) and last_value is not null order by 1`,
    [SCHEMAS],
  );
}
