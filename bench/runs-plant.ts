/**
 * Many runs in a state that the product has made once: the rows of one run, whatever its tables and columns are, copied with
 * another id each. No file of theirs exists but the first one's.
 */
import { openPool, type Database } from "#db/connection/pool.ts";

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
}

export interface Planting {
  readonly templateId: string;
  readonly count: number;
  /** Each run is so much older than the one before it. */
  readonly apartMs: number;
  /** Sets the ids of several plantings apart: a digit. */
  readonly mark: string;
}

const BATCH = 25_000;
const PATIENCE_MS = 3_600_000;

/** The id of a planted run, from its number `n`: as long as a real one, and before all real ones, so that indexes grow at one end. */
const planted = (mark: string): string =>
  `'run_0' || '${mark}' || lpad(n::text, 8, '0') || substr(md5('${mark}' || n), 1, 18)`;

/** The nth id, as SQL would make it. */
export async function plantedId(db: Database, mark: string, n: number): Promise<string> {
  const [row] = await db.query<{ id: string }>(
    `select ${planted(mark)} as id from (select $1::int as n) as given`,
    [n],
  );
  if (!row) throw new Error("no planted id");
  return row.id;
}

/** Copies the template's rows so many times. */
export async function plantRuns(connectionString: string, planting: Planting): Promise<void> {
  const db = openPool(
    { connectionString },
    { applicationName: "bench-plant", max: 1, statementTimeoutMs: PATIENCE_MS, queryTimeoutMs: PATIENCE_MS },
  );
  try {
    const statements = await copyStatements(db, planting);
    for (let from = 1; from <= planting.count; from += BATCH) {
      const to = Math.min(from + BATCH - 1, planting.count);
      await db.transaction(async (tx) => {
        // The rows that are named are copied in the same transaction; checking each of them would take most of the time.
        await tx.query("set local session_replication_role = replica");
        await tx.query("set local synchronous_commit = off");
        for (const text of statements) await tx.query(text, [planting.templateId, from, to]);
      });
    }
  } finally {
    await db.end();
  }
}

/** What a table that has been filled for long looks like: counted, and known to be visible to all. */
export async function settleTables(connectionString: string): Promise<void> {
  const db = openPool(
    { connectionString },
    { applicationName: "bench-plant", max: 1, statementTimeoutMs: PATIENCE_MS, queryTimeoutMs: PATIENCE_MS },
  );
  try {
    await db.query("vacuum analyze");
    await db.query("checkpoint");
  } finally {
    await db.end();
  }
}

/** One a table: the run's own, and all that refer to it. `$1` is the template, `$2` to `$3` are the numbers. */
async function copyStatements(
  db: Database,
  { mark, apartMs, templateId }: Planting,
): Promise<readonly string[]> {
  const columns = await listColumns(db);
  const tables = [...Map.groupBy(columns, ({ table }) => table)];
  return tables.map(([table, its]) => {
    const key = table === "run" ? "id" : "run_id";
    const values = its.map(({ name, type }) => {
      const column = `template.${name}`;
      // `run_key`, which grows at one end, too.
      if (type === "uuid") return `(lpad(to_hex(n), 8, '0') || substr(md5('${mark}' || n), 1, 24))::uuid`;
      if (name === "id" && table !== "run")
        return `split_part(${column}, '_', 1) || '_0${mark}' || lpad(n::text, 8, '0') || substr(md5('${table}' || n), 1, 18)`;
      // Objects have the run's id in their keys.
      if (type === "text") return `replace(${column}, '${templateId}', ${planted(mark)})`;
      return type === "timestamptz" ? `${column} - n * interval '${apartMs} ms'` : column;
    });
    return `insert into ${table} (${its.map(({ name }) => name).join(", ")})
      select ${values.join(", ")} from ${table} template, generate_series($2::int, $3::int) n where template.${key} = $1`;
  });
}

async function listColumns(db: Database): Promise<readonly Column[]> {
  return await db.query<Column>(
    `select pg_class.relname::text as table, quote_ident(attname) as name, typname::text as type
     from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = ''
       join pg_type on pg_type.oid = atttypid
     where pg_class.oid = 'run'::regclass
       or pg_class.oid in (select conrelid from pg_constraint where contype = 'f' and confrelid = 'run'::regclass)
     order by pg_class.oid <> 'run'::regclass, pg_class.relname, attnum`,
  );
}

/** Removes the runs made since then, with all that belongs to them. */
export async function deleteRunsSince(db: Database, since: Date): Promise<void> {
  const tables = new Set(
    (await listColumns(db)).map(({ table }) => table).filter((table) => table !== "run"),
  );
  // The installation has one account; with it, an index finds them.
  const recent = "account_id = (select id from account) and created_at >= $1";
  await db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    for (const table of tables)
      await tx.query(`delete from ${table} where run_id in (select id from run where ${recent})`, [since]);
    await tx.query(`delete from run where ${recent}`, [since]);
  });
}
