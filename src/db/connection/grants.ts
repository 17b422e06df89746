import pg from "pg";
import { failpoint } from "#lib/failpoint.ts";
import { withMigrationLock } from "./migrate.ts";
import type { Database } from "./pool.ts";

/**
 * Grants the service's role its rights on all objects in the schemas `public` and `graphile_worker`, and by default privileges on objects
 * that the owner creates later, so that migrations need no grants. Skips existing grants, revokes excess ones, and leaves objects alone
 * that the role owns. `owner` connects as the owner of the objects (or a superuser). Safe to run concurrently.
 */
export async function grantToService(owner: Database, role: string): Promise<void> {
  await failpoint("database.before_grants");
  await withMigrationLock(owner, async (tx) => {
    // Then object names include their schema.
    await tx.query("set local search_path to pg_catalog");
    for (const list of [LIST_GRANTS, LIST_POLICIES, LIST_DEFAULTS]) {
      const statements = await tx.query<{ statement: string }>(list, [role]);
      for (const { statement } of statements) await tx.query(statement);
    }
  });
}

/** Objects on which this connection's role lacks rights, such as `table run of postgres`; empty: none. */
export async function listMissingGrants(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ missing: string }>(LIST_MISSING);
  return rows.map(({ missing }) => missing);
}

/** The connection's role lacks a right. */
export function isRefusedRight(error: unknown): boolean {
  const { cause } = error as Error;
  return [error, cause].some((each) => each instanceof pg.DatabaseError && each.code === "42501");
}

/** The role of a connection. */
export async function readRole(db: Database): Promise<string> {
  const [row] = await db.query<{ role: string }>("select current_user as role");
  return row?.role ?? "";
}

/** Tables with restricted rights: the service must not forge migrations or delete audit entries. */
const RELATIONS = `select c.oid, relowner as owner, coalesce(relacl, acldefault('r', relowner)) as acl,
    n.nspname as schema,
    case
      when relkind in ('v', 'm') or n.nspname || '.' || relname in ('public.schema_migration', 'public.audit_month', 'graphile_worker.migrations')
        then array['SELECT']
      when n.nspname || '.' || relname = 'public.audit_entry' then array['INSERT', 'SELECT', 'UPDATE']
      else array['DELETE', 'INSERT', 'SELECT', 'UPDATE'] end as wanted,
    'table ' || c.oid::regclass as object
  from pg_class c join pg_namespace n on n.oid = relnamespace
  where n.nspname in ('public', 'graphile_worker') and relkind in ('r', 'p', 'v', 'm')
    and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`;

const LIST_GRANTS = `with object as (
    select oid, owner, acl, wanted, object from (${RELATIONS}) as relation
    union all
    select c.oid, relowner, coalesce(relacl, acldefault('S', relowner)), array['SELECT', 'USAGE'], 'sequence ' || c.oid::regclass
    from pg_class c
    where relnamespace::regnamespace::text in ('public', 'graphile_worker') and relkind = 'S'
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
    union all
    select p.oid, proowner, coalesce(proacl, acldefault('f', proowner)), array['EXECUTE'], 'routine ' || p.oid::regprocedure
    from pg_proc p
    where pronamespace::regnamespace::text in ('public', 'graphile_worker') and prokind in ('f', 'p')
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')
    union all
    select n.oid, nspowner, coalesce(nspacl, acldefault('n', nspowner)), array['USAGE'], format('schema %I', nspname)
    from pg_namespace n
    where nspname = 'graphile_worker'
      or (nspname = 'public' and not has_schema_privilege($1, n.oid, 'USAGE'))
  )
  select format('revoke all on %1$s from %2$I; grant %3$s on %1$s to %2$I', object, $1, array_to_string(wanted, ', ')) as statement
  from object
  where owner <> (select oid from pg_roles where rolname = $1)
    and pg_has_role(owner, 'USAGE')
    and wanted <> array(select distinct privilege_type from aclexplode(acl)
      where grantee = (select oid from pg_roles where rolname = $1) order by 1)`;

/** graphile-worker's tables have row security, by which their owner excludes other roles; this policy admits the role. */
const LIST_POLICIES = `select format('create policy %1$I on %2$s to %1$I using (true) with check (true)', $1::text, c.oid::regclass) as statement
  from pg_class c
  where relnamespace::regnamespace::text = 'graphile_worker' and relrowsecurity
    and relowner <> (select oid from pg_roles where rolname = $1) and pg_has_role(relowner, 'USAGE')
    and not exists (select from pg_policy where polrelid = c.oid and polname = $1)`;

/** Missing default privileges, one per kind of object and schema. */
const LIST_DEFAULTS = `select format('alter default privileges in schema %s grant %s on %s to %I', schema, rights, noun, $1::text) as statement
  from unnest(array['public', 'graphile_worker']) as schema,
    (values ('r', 'tables', 'select, insert, update, delete'), ('S', 'sequences', 'select, usage'), ('f', 'routines', 'execute'))
      as wanted (kind, noun, rights)
  where current_user <> $1 and not exists (
    select from pg_default_acl, aclexplode(defaclacl) as entry
    where defaclrole = current_user::regrole and defaclnamespace = schema::regnamespace and defaclobjtype = kind::"char"
      and entry.grantee = (select oid from pg_roles where rolname = $1))`;

/** Only tables of our owner: the schema `public` may have others as well. */
const LIST_MISSING = `select object || ' of ' || pg_get_userbyid(owner) as missing from (${RELATIONS}) as relation
  where (schema = 'graphile_worker'
      or owner = (select relowner from pg_class where oid = to_regclass('public.schema_migration')))
    and exists (select from unnest(wanted) as privilege where not has_table_privilege(oid, privilege))
  order by 1`;
