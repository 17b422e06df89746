import type { Database } from "./pool.ts";

/**
 * Excess rights of the service's role and risks of its connection, each with its remedy. `hasOwner`: another role runs the migrations.
 */
export async function listRoleRisks(db: Database, hasOwner: boolean): Promise<readonly string[]> {
  const [found] = await db.query<Found>(
    `select rolname as role, rolsuper as "isSuperuser",
       array_remove(array[case when rolcreaterole then 'CREATEROLE' end, case when rolcreatedb then 'CREATEDB' end,
         case when rolreplication then 'REPLICATION' end, case when rolbypassrls then 'BYPASSRLS' end], null) as attributes,
       array(select other.rolname::text from pg_roles other
         where other.rolname ~ '^pg_' and other.rolname <> 'pg_database_owner' and pg_has_role(current_user, other.oid, 'MEMBER')
         order by 1) as memberships,
       exists (select from pg_class where relnamespace::regnamespace::text in ('public', 'graphile_worker')
         and relkind in ('r', 'p') and pg_has_role(current_user, relowner, 'MEMBER')) as "isOwner",
       has_schema_privilege('public', 'CREATE') as "mayCreate"
     from pg_roles where rolname = current_user`,
  );
  if (found === undefined) return [];
  return [...risksOfRole(found, hasOwner), ...(await risksOfConnection(db))];
}

interface Found {
  readonly role: string;
  readonly isSuperuser: boolean;
  readonly attributes: readonly string[];
  readonly memberships: readonly string[];
  readonly isOwner: boolean;
  readonly mayCreate: boolean;
}

const REMEDY = "docs/database.md says how to make one that can do no more than the service needs";

function risksOfRole(found: Found, hasOwner: boolean): readonly string[] {
  const { role, isSuperuser, attributes, memberships, isOwner, mayCreate } = found;
  // A superuser has all of the following privileges.
  if (isSuperuser) {
    return [
      `the role ${role} of DATABASE_URL is a superuser: it reads files of the database's machine and runs programs there; ${REMEDY}`,
    ];
  }
  const risks: string[] = [];
  const more = [...attributes, ...memberships];
  if (more.length > 0)
    risks.push(`the role ${role} of DATABASE_URL has ${more.join(", ")}, which it does not need; ${REMEDY}`);
  if (hasOwner && isOwner) {
    risks.push(
      `the role ${role} of DATABASE_URL owns the schema, though DATABASE_OWNER_URL is set: it can change tables and switch off their ` +
        `guards; ${REMEDY}`,
    );
  } else if (hasOwner && mayCreate) {
    risks.push(
      `the role ${role} of DATABASE_URL may create objects in the schema public; run \`revoke create on schema public from public, "${role}"\``,
    );
  }
  return risks;
}

/** Judged by the client: with a pooler or proxy in between, the server sees only the pooler's connection. */
export async function risksOfConnection(db: Database): Promise<readonly string[]> {
  const client = await db.pool.connect();
  try {
    const { stream } = client.connection;
    // A socket, of TLS or not.
    const { remoteAddress, encrypted } = stream as typeof stream & {
      remoteAddress?: string;
      encrypted?: boolean;
    };
    // A unix socket has no address.
    if (remoteAddress === undefined || encrypted === true || isLoopback(remoteAddress)) return [];
    return [
      `the connection of DATABASE_URL to ${remoteAddress} is not encrypted: anyone on the network path can read and change what the service ` +
        "stores; add sslmode=verify-full to it",
    ];
  } finally {
    client.release();
  }
}

/** Whether an address, as reported by the system, is ::1 or in 127.0.0.0/8, also when written as an IPv6 address. */
const isLoopback = (address: string): boolean => address === "::1" || /^(::ffff:)?127\./i.test(address);
