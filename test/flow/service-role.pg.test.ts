import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { must } from "#lib/assert.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openDatabase } from "#service/open-database.ts";
import { openLog } from "#lib/log.ts";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { install, type Installation } from "../service.ts";
import { createSeparateRoles, type SeparateRoles } from "../service-role.ts";
import { runHousekeeping } from "./run-history.ts";
import { startTarget, type Target } from "./target.ts";
import { portalDocuments } from "../vault/token-portal.ts";

// Finding M5: the whole service as a role that may read and write rows, and nothing else (DATABASE_URL, DATABASE_OWNER_URL).

const TOKEN = "canary-token-of-the-role";
let separate: SeparateRoles;
let target: Target;
let installation: Installation & AsyncDisposable;
let caller: Caller;
let credential: string;
let firstRun: string;

before(async () => {
  target = await startTarget(({ headers }) =>
    headers.authorization === `Bearer ${TOKEN}`
      ? { body: { items: [{ id: "1" }, { id: "2" }] } }
      : { status: 401 },
  );
  separate = await createSeparateRoles();
  const { environment, db } = separate;
  const config = readConfig({ ...environment, LATCHKEY_DATA_DIR: "/nowhere" });
  await (await openDatabase(config, openLog({ level: "silent", format: "json" }))).close();
  installation = await install(
    { DATABASE_OWNER_URL: environment.DATABASE_OWNER_URL },
    { connectionString: environment.DATABASE_URL, db, drop: async () => {} },
  );
  await installation.apply(
    ...portalDocuments(target.url, { login: ", cache: 15m", blueprint: "retention: 1h" }),
    `blueprint: ask
account: acme
nodes:
  - { id: in, type: input, refKey: rows, accepts: json }
  - { id: rows, type: parse, from: in, format: json }
  - { id: gate, type: review, from: rows, title: Look }
  - { id: out, type: output, refKey: rows, from: gate }`,
  );
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await separate?.[Symbol.asyncDispose]();
  await target?.close();
});

const command = async (...words: string[]): Promise<string> =>
  (await runCommand(installation, 0, words)).stdout;

async function runOnce(): Promise<string> {
  const { status, text, body } = await caller.post("/blueprints/read/trigger", { credential_id: credential });
  assert.equal(status, 202, text);
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
  return body.id;
}

test("connections are those of the service's role, and the owner's are closed after the start", async () => {
  const { administrator, roles } = separate;
  const rows = await administrator.query<{ role: string }>(
    `select distinct usename as role from pg_stat_activity where datname = current_database()
       and backend_type = 'client backend' and application_name <> 'latchkey-test' and pid <> pg_backend_pid()`,
  );
  // Not counted: the server's own, as autovacuum's, which has no role.
  assert.deepEqual(rows, [{ role: roles.service }]);
});

test("a credential is collected and used", async () => {
  credential = await connect(caller, "strat_portal", { token: TOKEN });
  firstRun = await runOnce();
  const results = await caller.get(`/blueprint-runs/${firstRun}/results?deliveryMethod=direct`);
  assert.equal(results.body.results.items.totalRecords, 2);
});

test("a review is decided on the command line, and its run goes on", async () => {
  const { body } = await caller.post("/blueprints/ask/trigger", { rows: [{ n: 1 }] });
  const review = await eventually("the run waits for a person", async () => {
    const [row] = await separate.db.query<{ id: string }>("select id from review where run_id = $1", [
      body.id,
    ]);
    return row?.id;
  });
  await command("reviews", "approve", review, "--by", "ana");
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
});

test("the doctor finds nothing wrong, and has no advice about the role", async () => {
  const said = await command("doctor", "--deep");
  assert.doesNotMatch(said, /wrong|superuser|owns the schema|does not need|may create/);
});

test("the master key is rotated while the service works", async () => {
  const newKid = must(/Added (\S{16}) to the file/.exec(await command("master-key", "add"))?.[1], "kid");
  await command("master-key", "promote", newKid);
  await command("master-key", "rewrap");
  await runOnce();
  const rows = await separate.db.query<{ kid: string }>("select distinct kid from credential");
  assert.deepEqual(rows, [{ kid: newKid }]);
  const { items: keys } = JSON.parse(await command("master-key", "status", "--json")) as {
    items: { kid: string }[];
  };
  const oldKid = must(keys.find(({ kid }) => kid !== newKid)?.kid, "the old key");
  // A key is retired a minute after its promotion at the earliest. The clock is a function, and so the owner's.
  await moveClock(separate.owner, "5 minutes");
  await command("master-key", "retire", oldKid);
  await runOnce();
});

test("what is past its time is purged by the worker's housekeeping", async () => {
  await moveClock(separate.owner, "3 hours");
  await runHousekeeping(separate.db);
  const results = await caller.get(`/blueprint-runs/${firstRun}/results?deliveryMethod=direct`);
  assert.equal(results.status, 400);
  assert.equal(results.body.error.details[0].code, "run_data_purged");
});

test("a credential is deleted, and in all of it nothing was refused to the role", async () => {
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 204);
  assert.doesNotMatch(installation.logs(), /permission denied|"code":"42501"/);
});
