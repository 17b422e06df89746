import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { applyConfig } from "#actions/config/apply-config.ts";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { createApiKey } from "#actions/keys/create-api-key.ts";
import { createFirstOperator } from "#actions/operators/create-first-operator.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { packagedBinaries, readyBinaries } from "#db/embedded/binaries.ts";
import { openCluster } from "#db/embedded/cluster.ts";
import { openDataFolder } from "#db/embedded/data-folder.ts";
import { ensureDatabase } from "#db/embedded/first-connection.ts";
import { withFolderLock } from "#db/embedded/folder-lock.ts";
import { startServer, stopServer } from "#db/embedded/server.ts";
import { chooseServerUser } from "#db/embedded/server-user.ts";
import { openSocketFolder, port, removeSocketFolder } from "#db/embedded/socket-folder.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openKeySource } from "#service/open-key-source.ts";
import { readKeys } from "#vault/key-source.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import { openCaller } from "../caller.ts";
import { migrateAll } from "../database.ts";
import {
  latchkey,
  latchkeyProcess,
  newFolder,
  processesWith,
  startLatchkey,
  urlOf,
  type Environment,
} from "./program.ts";
import { inTier, testInAll } from "../tiers.ts";

// Finding M5: until the service got a role of its own, it connected as the superuser of the embedded PostgreSQL. What was made
// then is converted at the first start.

const parent = newFolder();
const old = join(parent, "old");
let key: string;
let ownersPassword: string;

before(async () => {
  key = await makeOneRoleInstallation(old);
  ownersPassword = readFileSync(join(old, "postgres-password"), "utf8");
});

after(() => {
  for (const pid of processesWith(parent)) process.kill(pid, "SIGKILL");
  rmSync(parent, { recursive: true, force: true });
});

const DOCUMENTS = `account: acme
---
blueprint: echo
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }
`;

/** Step by step what a start did then; gives an API key of what is in it. */
async function makeOneRoleInstallation(dataDir: string): Promise<string> {
  const folder = openDataFolder(dataDir);
  return await withFolderLock(folder, async () => {
    const native = packagedBinaries();
    const { user, binaries } = await chooseServerUser(folder, readyBinaries(native, folder), native);
    const socketFolder = openSocketFolder(folder, user);
    const cluster = await openCluster(folder, user, binaries, socketFolder);
    const server = { host: socketFolder, port, user: cluster.user, password: cluster.password };
    await startServer(folder, cluster, user, binaries, socketFolder, () => {});
    await ensureDatabase(server, "latchkey");
    const db = openPool({ ...server, database: "latchkey" }, { applicationName: "latchkey" });
    try {
      await migrateAll(db);
      const roles = await db.query("select rolname, rolsuper from pg_roles where rolname !~ '^pg_'");
      assert.deepEqual(roles, [{ rolname: "latchkey", rolsuper: true }]);
      return await fill(db, dataDir);
    } finally {
      await db.end();
      await stopServer(cluster.path);
      removeSocketFolder(folder);
    }
  });
}

async function fill(db: Database, dataDir: string): Promise<string> {
  writeFileSync(join(dataDir, "signing.key"), `${generateSigningKey()}\n`, { mode: 0o600 });
  writeFileSync(join(dataDir, "master.key"), generateMasterKey().fileText, { mode: 0o600 });
  const signing = openSigning(readSigningKey(readFileSync(join(dataDir, "signing.key"), "utf8").trim()));
  await checkSigningKey(db, signing);
  await prepareVault(db, await readKeys(openKeySource(readConfig({ LATCHKEY_DATA_DIR: dataDir }))));
  await createFirstOperator(db, signing, "admin@localhost");
  assert.ok((await applyConfig(db, signing, [{ file: "f", text: DOCUMENTS }])).ok);
  const options = { account: "acme", name: "", blueprintKeys: null, scopes: null, lifetimeMs: null };
  return (await createApiKey(db, signing, options)).key;
}

/** A copy of the old installation, and how to run commands there. */
function copyOld(name: string): { readonly data: string; readonly environment: Environment } {
  const data = join(parent, name);
  // With modes and owners: PostgreSQL looks at them.
  execFileSync("cp", ["-a", old, data]);
  return { data, environment: { LATCHKEY_DATA_DIR: data, LATCHKEY_PORT: "0", HOME: parent } };
}

/** Serves, works, and looks at what the conversion has left. */
async function assertConverted({ data, environment }: ReturnType<typeof copyOld>): Promise<void> {
  const service = startLatchkey(["serve"], environment);
  const caller = openCaller(await urlOf(service), key);
  const run = await caller.post("/blueprints/echo/trigger", { words: [{ word: "one" }] });
  assert.equal(run.status, 202, run.text);
  assert.equal((await caller.waitForRun(run.body.id)).body.status, "completed");
  const server = await startEmbeddedPostgres({ dataDir: data });
  const owner = openPool(server.ownerConnection, { applicationName: "test", max: 1 });
  try {
    assert.deepEqual(
      await owner.query(
        `select usename as role, count(*) > 0 as connected from pg_stat_activity
         where datname = 'latchkey' and pid <> pg_backend_pid() group by 1`,
      ),
      [{ role: "latchkey_app", connected: true }],
      "the service is connected as its role alone",
    );
    assert.deepEqual(
      await owner.query(
        `select distinct pg_get_userbyid(relowner) as owner from pg_class
         where relnamespace::regnamespace::text in ('public', 'graphile_worker')`,
      ),
      [{ owner: "latchkey" }],
      "what there is still belongs to its owner",
    );
    assert.deepEqual(await owner.query("select email from operator"), [{ email: "admin@localhost" }]);
  } finally {
    await owner.end();
    await server.stop();
  }
  service.child.kill("SIGTERM");
  assert.equal((await service.ended).code, 0, service.stderr());
  assert.equal(readFileSync(join(data, "postgres-password"), "utf8"), ownersPassword);
  assert.equal((statSync(join(data, "postgres-app-password")).mode & 0o777).toString(8), "600");
}

const AT_ONCE = "four processes that start at once convert it once, and it goes on working as before";
testInAll("one that goes on after it was killed, below", AT_ONCE, {}, async () => {
  const place = copyOld("at-once");
  const results = await Promise.all(
    [1, 2, 3, 4].map(async () => await latchkey(["migrate"], place.environment)),
  );
  for (const { code, stdout, stderr } of results) assert.equal(code, 0, stdout + stderr);
  const { code, stdout } = await latchkey(["doctor"], place.environment);
  assert.equal(code, 0, stdout);
  assert.doesNotMatch(stdout, /superuser|DATABASE_OWNER_URL/, "no advice about its own role");
  await assertConverted(place);
});

test("killed in the middle of the conversion, the next start goes on with it", async () => {
  const place = copyOld("killed");
  const password = join(place.data, "postgres-app-password");
  let kept = "";
  const points = ["database.after_password", "database.after_role", "database.before_grants"];
  for (const point of inTier(points, (each) => each === "database.after_role")) {
    // The role gets its rights by what migrates, and a command that only reads refuses a database whose migrations it can't see.
    const command = point === "database.before_grants" ? ["migrate"] : ["keys", "list"];
    const { signal, stderr } = await latchkeyProcess(command, {
      ...place.environment,
      LATCHKEY_FAILPOINTS: `${point}=kill`,
    });
    assert.equal(signal, "SIGKILL", `${point}: ${stderr}`);
    kept ||= readFileSync(password, "utf8");
    assert.equal(readFileSync(password, "utf8"), kept, "the password that the role may have by now stays");
  }
  await assertConverted(place);
});

test("a lost password of the service's role is made anew; the owner's is asked for", async () => {
  const place = copyOld("lost");
  assert.equal((await latchkey(["migrate"], place.environment)).code, 0);
  const password = join(place.data, "postgres-app-password");
  const first = readFileSync(password, "utf8");
  rmSync(password);
  assert.equal((await latchkey(["keys", "list"], place.environment)).code, 0);
  assert.notEqual(readFileSync(password, "utf8"), first);
  writeFileSync(password, "another");
  assert.equal((await latchkey(["keys", "list"], place.environment)).code, 0);
  rmSync(join(place.data, "postgres-password"));
  const { code, stderr } = await latchkey(["keys", "list"], place.environment);
  assert.equal(code, 1);
  assert.match(stderr, /password of the embedded PostgreSQL is missing: .*postgres-password\. Restore/);
  assert.ok(!existsSync(join(place.data, "postgres-password")));
});
