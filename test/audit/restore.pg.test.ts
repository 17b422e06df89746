// docs/decisions/0024: what was deleted after the backup stays deleted after its restore.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openPool, type Database } from "#db/connection/pool.ts";
import { connect, openCaller } from "../caller.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { install } from "../service.ts";

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let apiKey: string;
let backup: { url: string; db: Database; drop(): Promise<void> };

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url, { cache: "15m" }));
  apiKey = await installation.createKey("acme");
});

after(async () => {
  await backup?.drop();
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

/** The database as it is now, under another name: what a dump that is restored elsewhere is. Nothing may use it meanwhile. */
async function copyDatabase(): Promise<typeof backup> {
  const url = new URL(installation.database.connectionString);
  const name = url.pathname.slice(1);
  const at = (database: string): string => Object.assign(new URL(url), { pathname: `/${database}` }).href;
  const maintenance = openPool(
    { connectionString: at("postgres") },
    { applicationName: "latchkey-test", statementTimeoutMs: 60_000, queryTimeoutMs: 65_000 },
  );
  // A template must not be in use: the pool of the test lets go of it, and opens again by itself.
  await maintenance.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`,
    [name],
  );
  await maintenance.query(`create database ${name}_backup template ${name}`);
  const db = openPool({ connectionString: at(`${name}_backup`) }, { applicationName: "latchkey-test" });
  return {
    url: at(`${name}_backup`),
    db,
    drop: async () => {
      await db.end();
      await maintenance.query(`drop database if exists ${name}_backup with (force)`);
      await maintenance.end();
    },
  };
}

test("restore an older backup, reconcile, serve: the deleted credential is gone, its runs fail, its target hears nothing", async () => {
  // One machine for the API, another one for the worker and the API: each has a data folder of its own, with the same keys.
  const first = await installation.serveProcess();
  const caller = openCaller(first.url, apiKey);
  const [deleted, elsewhere, kept] = [
    await connect(caller, "strat_ledger", LEDGER_LOGIN),
    await connect(caller, "strat_ledger", LEDGER_LOGIN),
    await connect(caller, "strat_ledger", LEDGER_LOGIN),
  ];
  const { body: done } = await caller.post("/blueprints/ledger/trigger", { credential_id: deleted });
  assert.equal((await caller.waitForRun(done.id)).body.status, "completed");
  // A run that is waiting, and one that is under way, when the backup is made.
  const hold = target.hold((request) => request.path === "/first");
  const { body: inProgress } = await caller.post("/blueprints/ledger/trigger", { credential_id: deleted });
  await hold.reached;
  await first.end("SIGKILL");
  hold.release();
  const apiOnly = await installation.serveProcess({}, ["api"]);
  const { body: waiting } = await openCaller(apiOnly.url, apiKey).post("/blueprints/ledger/trigger", {
    credential_id: deleted,
  });
  await apiOnly.end();
  backup = await copyDatabase();

  const later = await installation.serveProcess({}, ["api"]);
  assert.equal((await openCaller(later.url, apiKey).delete(`/credentials/${deleted}`)).status, 204);
  await later.end();
  // Deleted at another machine, whose file was collected.
  const other = join(installation.dataFolder, "other-tombstones.ndjson");
  writeFileSync(
    other,
    `{"v":1,"deleted":"${elsewhere}","account":"acct_x","at":"2026-11-21T07:08:09.123Z"}\n{"v":1,"deleted":"${kept}"}\n{"v":1,"undone":"${kept}"}\n{"torn`,
  );

  target.reset();
  const restored = { DATABASE_URL: backup.url };
  assert.equal(
    (await backup.db.query("select 1 from credential where id = $1", [deleted])).length,
    1,
    "it is back",
  );
  Object.assign(installation.environment, restored);
  // The backup is another database, and the objects are the old one's until somebody says otherwise.
  assert.match((await installation.command("store", "adopt")).stdout, /now belongs to this installation/);
  const missing = await installation.command("restore-reconcile", "--tombstones", `${other}.missing`);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /There is no .*missing/);
  const own = join(installation.dataFolder, "tombstones.ndjson");
  const reconcile = async (): Promise<unknown> => {
    const { code, stdout, stderr } = await installation.command(
      "restore-reconcile",
      "--tombstones",
      own,
      other,
      "--json",
    );
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  assert.deepEqual(await reconcile(), { tombstones: 2, deleted: 2, unreadable: 1, rows: 0 });
  assert.deepEqual(await reconcile(), { tombstones: 2, deleted: 0, unreadable: 1, rows: 0 });

  const again = await installation.serveProcess();
  const after = openCaller(again.url, apiKey);
  assert.equal((await after.delete(`/credentials/${deleted}`)).status, 404);
  for (const id of [deleted, elsewhere])
    assert.equal((await after.post("/blueprints/ledger/trigger", { credential_id: id })).status, 422);
  for (const { id } of [waiting, inProgress]) {
    const { body } = await after.waitForRun(id);
    assert.equal(body.status, "failed");
    assert.equal(body.error.code, "execution_failed");
  }
  assert.deepEqual(target.requests, []);
  for (const table of [
    "credential where id",
    "login_session where credential_id",
    "totp_use where credential_id",
  ])
    assert.equal((await backup.db.query(`select 1 from ${table} = $1`, [deleted])).length, 0, table);
  const { body: run } = await after.post("/blueprints/ledger/trigger", { credential_id: kept });
  assert.equal((await after.waitForRun(run.id)).body.status, "completed", "what was not deleted works");
  await again.end();

  const entries = await backup.db.query<{ subject: string; detail: string }>(
    `select subject_id as subject, detail from audit_entry
     where action = 'credential.delete' or action = 'restore.reconcile' order by occurred_at, id`,
  );
  assert.deepEqual(
    entries.map(({ subject, detail }) => [subject, JSON.parse(detail)]),
    [
      [deleted, { after_restore: true }],
      [elsewhere, { after_restore: true }],
      ["installation", { tombstones: 2, deleted: 2, unreadable: 1, rows: 0 }],
      ["installation", { tombstones: 2, deleted: 0, unreadable: 1, rows: 0 }],
    ],
  );
});

test("an audit export names the deletes as a tombstone file does", async () => {
  const file = join(installation.dataFolder, "export.ndjson");
  const { stdout } = await installation.command("audit", "export", "--json");
  writeFileSync(file, stdout);
  const { code, stdout: counts } = await installation.command(
    "restore-reconcile",
    "--tombstones",
    file,
    "--json",
  );
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(counts), { tombstones: 2, deleted: 0, unreadable: 0, rows: 0 });
});
