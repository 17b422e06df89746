import { migrate, readMigrations } from "#db/connection/migrate.ts";
import type { Database } from "#db/connection/pool.ts";

/** What a version that serves meanwhile notices of a migration: the file, the object, and what happens to it. */
export interface SchemaChange {
  readonly file: string;
  readonly object: string;
  readonly change: Change;
}

export type Change =
  | "is dropped"
  | "has another type"
  | "is required"
  | "is no longer required"
  | "holds for new rows"
  | "is checked under a lock"
  | "is built under a lock"
  | "is rewritten";

/** A table, column, constraint, index, trigger or function, as PostgreSQL's catalog has it. */
interface CatalogObject {
  readonly kind: "table" | "column" | "key" | "constraint" | "index" | "trigger" | "function";
  readonly table: string;
  readonly name: string;
  readonly definition: string;
  /** Of a column: it must be given. Of a constraint: all rows were checked. */
  readonly strict: boolean;
  /** Of a constraint or an index: the columns that it looks at. */
  readonly columns: readonly string[];
}

type Catalog = ReadonlyMap<string, CatalogObject>;

/** Applies a folder's migrations to an empty database. Gives what those after `earlier` change of that version's objects. */
export async function listChanges(
  db: Database,
  folder: string,
  earlier: string,
): Promise<readonly SchemaChange[]> {
  const migrations = await readMigrations(folder);
  const since = migrations.findIndex(({ file }) => file === earlier) + 1;
  if (since === 0) throw new Error(`${folder} has no ${earlier}.`);
  await migrate(db, folder, { through: since });
  const known = await readCatalog(db);
  const changes: SchemaChange[] = [];
  let before = known;
  for (const [index, { file, concurrentIndex }] of migrations.slice(since).entries()) {
    await migrate(db, folder, { through: since + index + 1 });
    const after = await readCatalog(db);
    const isLocked = concurrentIndex === null;
    for (const [object, change] of compare(known, before, after, isLocked))
      changes.push({ file, object, change });
    before = after;
  }
  return changes;
}

/** Only objects that the earlier version knows, and what is put on its tables. */
function* compare(
  known: Catalog,
  before: Catalog,
  after: Catalog,
  isLocked: boolean,
): Generator<readonly [string, Change]> {
  for (const [id, was] of before) {
    const now = after.get(id);
    if (!known.has(id) || (was.table !== "" && !after.has(`table ${was.table}`) && was.kind !== "table"))
      continue;
    // Rows that a constraint no longer refuses are none that the earlier version writes; a key is what its ON CONFLICT names.
    if (now === undefined && was.kind !== "constraint") yield [id, "is dropped"];
    if (now === undefined) continue;
    if (was.kind === "table" && was.definition !== now.definition) yield [id, "is rewritten"];
    if (was.kind !== "column") continue;
    if (was.definition !== now.definition) yield [id, "has another type"];
    if (was.strict !== now.strict) yield [id, now.strict ? "is required" : "is no longer required"];
  }
  for (const [id, now] of after) {
    const was = before.get(id);
    if (!known.has(`table ${now.table}`) || (was !== undefined && was.definition === now.definition))
      continue;
    if (now.kind === "column" && was === undefined && now.strict) yield [id, "is required"];
    if (now.kind === "index" && isLocked) yield [id, "is built under a lock"];
    if (now.kind !== "constraint" && now.kind !== "key") continue;
    const isOfNewColumns = now.columns.every((name) => !known.has(`column ${now.table}.${name}`));
    if (!isOfNewColumns) yield [id, "holds for new rows"];
    if (now.strict) yield [id, "is checked under a lock"];
  }
}

async function readCatalog(db: Database): Promise<Catalog> {
  const rows = await db.query<CatalogObject>(CATALOG);
  return new Map(
    rows.map((row) => [`${row.kind} ${row.table}${row.table && row.name ? "." : ""}${row.name}`, row]),
  );
}

const COLUMNS_OF = `array(select attname::text from pg_attribute where attrelid = class.oid and attnum = any(keys) and attnum > 0)`;

const CATALOG = `
  with class as (
    select oid, relname::text as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'schema_migration'
  )
  select 'table' as kind, name as "table", '' as name, pg_relation_filenode(oid)::text as definition, false as strict,
    '{}'::text[] as columns
  from class
  union all
  select 'column', name, attname::text, format_type(atttypid, atttypmod),
    attnotnull and pg_attrdef.oid is null and attidentity = '', '{}'
  from class join pg_attribute on attrelid = class.oid and attnum > 0 and not attisdropped
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
  union all
  select case when contype in ('p', 'u', 'x') then 'key' else 'constraint' end, name, conname::text,
    replace(pg_get_constraintdef(pg_constraint.oid), ' NOT VALID', ''), convalidated, ${COLUMNS_OF.replace("keys", "conkey")}
  from class join pg_constraint on conrelid = class.oid and contype in ('p', 'u', 'x', 'f', 'c')
  union all
  select 'index', name, indexrelid::regclass::text, pg_get_indexdef(indexrelid), false, '{}'
  from class join pg_index on indrelid = class.oid
  where not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
  union all
  select 'trigger', name, tgname::text, pg_get_triggerdef(pg_trigger.oid), false, '{}'
  from class join pg_trigger on tgrelid = class.oid and not tgisinternal
  union all
  select 'function', '', format('%s(%s)', proname, pg_get_function_identity_arguments(oid)), '', false, '{}'
  from pg_proc where pronamespace = 'public'::regnamespace`;
