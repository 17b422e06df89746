import { randomBytes } from "node:crypto";
import { openPool, type Database } from "#db/connection/pool.ts";
import { createTestDatabase } from "./database.ts";

/** An empty database as an operator sets it up: an owner without any right on the server, and a role for the service. */
export interface SeparateRoles extends AsyncDisposable {
  /** DATABASE_URL and DATABASE_OWNER_URL. */
  readonly environment: { readonly DATABASE_URL: string; readonly DATABASE_OWNER_URL: string };
  readonly roles: { readonly owner: string; readonly service: string };
  /** As each of them; the administrator is a superuser. */
  readonly db: Database;
  readonly owner: Database;
  readonly administrator: Database;
}

/** As docs/database.md says it: `owner` owns the database. */
export async function createSeparateRoles(): Promise<SeparateRoles> {
  await using made = new AsyncDisposableStack();
  const { connectionString, db: administrator, drop } = await createTestDatabase();
  made.defer(drop);
  const name = new URL(connectionString).pathname.slice(1);
  const roles = { owner: `${name}_owner`, service: `${name}_app` };
  const password = randomBytes(16).toString("hex");
  await administrator.query(`drop schema public cascade; drop schema graphile_worker cascade;
    create schema public authorization pg_database_owner; grant usage on schema public to public;
    create role ${roles.owner} login password '${password}'; create role ${roles.service} login password '${password}';
    alter database ${name} owner to ${roles.owner}; revoke temporary on database ${name} from public`);
  made.defer(async () => {
    await administrator.query(
      `alter database ${name} owner to current_user; drop schema public cascade; drop schema if exists graphile_worker cascade;
       drop owned by ${roles.owner}, ${roles.service}; drop role ${roles.owner}, ${roles.service}`,
    );
  });
  const urlAs = (role: string): string => {
    const url = new URL(connectionString);
    url.username = role;
    url.password = password;
    return url.href;
  };
  const environment = { DATABASE_URL: urlAs(roles.service), DATABASE_OWNER_URL: urlAs(roles.owner) };
  const open = (url: string): Database => {
    const db = openPool({ connectionString: url }, { applicationName: "latchkey-test" });
    made.defer(async () => await db.end());
    return db;
  };
  const [db, owner] = [open(environment.DATABASE_URL), open(environment.DATABASE_OWNER_URL)];
  const kept = made.move();
  return {
    environment,
    roles,
    db,
    owner,
    administrator,
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
