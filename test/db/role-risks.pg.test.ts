import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { TLSSocket } from "node:tls";
import { openPool } from "#db/connection/pool.ts";
import { listRoleRisks, risksOfConnection } from "#db/connection/role-risks.ts";
import { openLog } from "#lib/log.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openDatabase } from "#service/open-database.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { createSeparateRoles } from "../service-role.ts";

// Finding M5: a role that can do more than the service needs, and a connection to another machine that anybody on the way can read.
// The test's server has a unix socket alone: in front of it is a relay on every address of this machine, which answers a request for TLS as PostgreSQL does.

const CERTIFICATES = join(import.meta.dirname, "../strategies/certificates");
/** Length 8, and the number that asks for TLS. */
const ASKS_FOR_TLS = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

let database: TestDatabase;
const relay = createServer();
const sockets = new Set<Socket>();

before(async () => {
  database = await createTestDatabase();
  const { hostname, port } = new URL(database.connectionString);
  const path = `${decodeURIComponent(hostname)}/.s.PGSQL.${port}`;
  const pass = (client: Socket, first: Buffer | null): void => {
    const server = connect(path);
    for (const socket of [client, server]) socket.on("error", () => {});
    if (first !== null) server.write(first);
    client.pipe(server).pipe(client);
  };
  relay.on("connection", (client) => {
    sockets.add(client);
    client.on("error", () => {});
    client.once("data", (first) => {
      if (!first.equals(ASKS_FOR_TLS)) return pass(client, first);
      client.write("S");
      pass(
        new TLSSocket(client, {
          isServer: true,
          key: readFileSync(join(CERTIFICATES, "server.key.pem")),
          cert: readFileSync(join(CERTIFICATES, "server.pem")),
        }),
        null,
      );
    });
  });
  await new Promise<void>((done) => relay.listen(0, "0.0.0.0", done));
});

after(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((done) => relay.close(done));
  await database.drop();
});

async function risksAt(address: string | null, query = ""): Promise<readonly string[]> {
  const url = new URL(database.connectionString);
  const path = url.pathname;
  const { username, password } = url;
  const host =
    address === null
      ? url.host
      : `${address.includes(":") ? `[${address}]` : address}:${(relay.address() as AddressInfo).port}`;
  const db = openPool(
    { connectionString: `postgresql://${username}:${password}@${host}${path}${query}` },
    { applicationName: "latchkey-test", connectTimeoutMs: 20_000, max: 1 },
  );
  try {
    return await risksOfConnection(db);
  } finally {
    await db.end();
  }
}

const outer = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

test("a unix socket and loopback addresses are local", async () => {
  for (const address of [null, "127.0.0.1", "127.4.5.6", "localhost"])
    assert.deepEqual(await risksAt(address), [], String(address));
});

test(
  "another address wants TLS, and the advice names it",
  { skip: outer === undefined && "this machine has no address besides loopback" },
  async () => {
    const [risk, ...others] = await risksAt(outer ?? "");
    assert.equal(others.length, 0);
    assert.ok(risk?.includes(`DATABASE_URL to ${outer} is not encrypted`), risk);
    assert.match(risk ?? "", /sslmode=verify-full/);
    assert.deepEqual(await risksAt(outer ?? "", "?sslmode=no-verify"), []);
  },
);

test("a role that can do more than it needs is named: a superuser, one that reads the server's files, the schema's owner", async () => {
  await using separate = await createSeparateRoles();
  const { environment, db, owner, administrator, roles } = separate;
  const config = readConfig({ LATCHKEY_DATA_DIR: "/nowhere", ...environment });
  await (await openDatabase(config, openLog({ level: "silent", format: "json" }))).close();
  const said = async (as: typeof db, hasOwner: boolean) => (await listRoleRisks(as, hasOwner)).join("\n");
  assert.equal(await said(db, true), "");
  assert.equal(await said(owner, false), "", "one role for all, as before, is no reason to warn");

  assert.match(
    await said(administrator, true),
    /^the role \S+ of DATABASE_URL is a superuser.*docs\/database\.md.*$/,
  );
  for (const power of ["pg_read_server_files", "pg_write_server_files", "pg_execute_server_program"]) {
    await administrator.query(`grant ${power} to ${roles.service}`);
    assert.ok((await said(db, false)).includes(`has ${power}, which it does not need`), power);
    await administrator.query(`revoke ${power} from ${roles.service}`);
  }
  await administrator.query(`alter role ${roles.service} createrole bypassrls`);
  assert.match(await said(db, true), /has CREATEROLE, BYPASSRLS, which/);
  await administrator.query(`alter role ${roles.service} nocreaterole nobypassrls`);
  assert.match(await said(owner, true), /owns the schema, though DATABASE_OWNER_URL is set/);
  await administrator.query("grant create on schema public to public");
  assert.match(await said(db, true), /may create objects in the schema public/);
  await administrator.query("revoke create on schema public from public");
  assert.equal(await said(db, true), "");
});
