// SECURITY.md: a client's secret is sent to the origins that were given with it, whatever documents and rows say.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, openCaller } from "../caller.ts";
import { openBench, type Bench } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { foreignEnvironment, runCommand } from "../service-process.ts";
import { signAgain } from "../sign-again.ts";
import { itemsBlueprint, Visitor } from "./oauth-setup.ts";

const VALUE = "client-secret-canary-8Vd3kQ";

/** Who collects what is sent elsewhere. */
let trap: Target;
let bench: Bench;

const strategy = (id: string, login: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
login: { type: oauth2, client_id: x, ${login} }`;
const SECRET = "client_secret: { secret: NORTHWIND }";
const MACHINE = `grant: client_credentials, ${SECRET}`;

before(async () => {
  trap = await openTarget();
  bench = await openBench([
    "account: globex\nname: Globex",
    strategy("strat_run", `${MACHINE}, token_url: "{TARGET}/token"`),
    strategy("strat_form", `${SECRET}, authorization_url: "{TARGET}/authorize", token_url: "{TARGET}/token"`),
    itemsBlueprint("items", "strat_run"),
  ]);
  bench.target.on("POST /token", { json: { access_token: "access-token-1", token_type: "Bearer" } });
  bench.target.on("GET /api/items", { json: [{ n: 1 }] });
  await set("acme", "NORTHWIND", bench.target.url);
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});

const db = () => bench.installation.database.db;
const command = async (...arguments_: string[]) => await bench.installation.command(...arguments_);

function valueFile(value = `${VALUE}\n`): string {
  const file = join(bench.installation.dataFolder, "value.txt");
  writeFileSync(file, value);
  return file;
}

async function set(account: string, name: string, ...origins: string[]): Promise<string> {
  const more = ["--for", ...origins, "--file", valueFile()];
  const { code, stdout, stderr } = await command("secrets", "set", "--account", account, name, ...more);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** As somebody who writes to the database: another version of a strategy, in force at once, that no `apply` has seen. */
async function plantVersion(strategyId: string, change: object): Promise<void> {
  await db().query(
    `with planted as (
       insert into strategy_version (account_id, strategy_id, version, document)
       select account_id, strategy_id, version + 1,
         jsonb_set(document::jsonb, '{login}', (document::jsonb -> 'login') - $3::text || $2::jsonb)::text
       from strategy_version where strategy_id = $1 order by version desc limit 1 returning version)
     update strategy set current_version = (select version from planted) where id = $1`,
    [strategyId, JSON.stringify(change), "client_secret_env" in change ? "client_secret" : ""],
  );
  // With the signatures of the service, which a writer to the database has not: what is sealed with the secret holds by itself.
  await signAgain(db(), "strategy", "strategy_version");
}

async function runOnce() {
  return await bench.run("items", { credential_id: await bench.connect("strat_run", {}) });
}

const basic = (header: unknown): string =>
  Buffer.from(String(header).slice("Basic ".length), "base64").toString("utf8");

test("a secret is sent to its own origin: for a run, and for the code of a sign-in", async () => {
  const run = await runOnce();
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.equal(
    decodeURIComponent(basic(bench.target.seen("POST /token").at(-1)?.headers.authorization)),
    `x:${VALUE}`,
  );
  const { body: session } = await bench.caller.post("/credential-sessions", { strategy_id: "strat_form" });
  const visitor = new Visitor();
  const left = new URL(await visitor.leave(session.hosted_url));
  const back = `${left.searchParams.get("redirect_uri")}?code=c&state=${left.searchParams.get("state")}`;
  assert.equal((await visitor.open(back)).status, 200);
  const sent = bench.target.seen("POST /token").at(-1);
  assert.match(String(sent?.body), /grant_type=authorization_code/);
  assert.equal(decodeURIComponent(basic(sent?.headers.authorization)), `x:${VALUE}`);
});

test("apply, plan and validate refuse a document that would send a secret elsewhere; one that nobody has given is a warning", async () => {
  for (const elsewhere of [`token_url: "${trap.url}/token"`, `issuer: "${trap.url}"`]) {
    const [refusal, ...more] = await bench.refusals(strategy("strat_other", `${MACHINE}, ${elsewhere}`));
    assert.deepEqual(more, []);
    assert.match(
      String(refusal),
      /login\.client_secret\.secret.*`NORTHWIND` may not be sent to http:\/\/127\.0\.0\.1:\d+/,
    );
    assert.match(String(refusal), /latchkey secrets set --account acme NORTHWIND --for http/);
  }
  const file = join(bench.installation.dataFolder, "unknown.yaml");
  const unknown = strategy(
    "strat_unknown",
    `${MACHINE.replace("NORTHWIND", "NOBODY")}, token_url: "{TARGET}/token"`,
  );
  writeFileSync(file, unknown.replaceAll("{TARGET}", bench.target.url));
  const applied = await command("apply", "-f", file);
  assert.equal(applied.code, 0, applied.stderr);
  assert.match(applied.stderr, /acme\/strat_unknown uses the secret NOBODY, which the account does not have/);
  assert.match(
    (await command("doctor")).stdout,
    /wrong the strategy acme\/strat_unknown uses the secret NOBODY/,
  );
  // Where a file gives it, its origins count without a database.
  const secrets = join(bench.installation.dataFolder, "secrets.json");
  writeFileSync(
    secrets,
    JSON.stringify({ acme: { NOBODY: { value: VALUE, origins: ["https://a.example"] } } }),
  );
  const environment = { ...foreignEnvironment(), LATCHKEY_CLIENT_SECRETS_FILE: secrets };
  const main = fileURLToPath(new URL("../../src/main.mjs", import.meta.url));
  const account = join(bench.installation.dataFolder, "acme.yaml");
  writeFileSync(account, "account: acme\nname: Acme");
  assert.throws(
    () =>
      execFileSync(process.execPath, [main, "validate", "-f", account, file], {
        env: environment,
        stdio: "pipe",
      }),
    /`NOBODY` may not be sent to/,
  );
});

test("a row that would send it elsewhere sends nothing: the run and the sign-in say strategy, secret, origin and remedy", async () => {
  await plantVersion("strat_run", { token_url: `${trap.url}/token` });
  await plantVersion("strat_form", { token_url: `${trap.url}/token` });
  const refused = new RegExp(
    `strat_run: .*the secret NORTHWIND may not be sent to ${trap.url}, .*only to ${bench.target.url}; .*latchkey secrets set`,
  );
  const leaveOnce = async (): Promise<void> => {
    const { body: session } = await bench.caller.post("/credential-sessions", { strategy_id: "strat_form" });
    await assert.rejects(new Visitor().leave(session.hosted_url), /stayed: 502/);
  };
  assert.match(String((await runOnce()).detail), refused);
  await leaveOnce();
  // The origins that count are sealed with the value: the column is for people.
  await db().query(`update account_secret set origins = origins || $1::text`, [trap.url]);
  assert.match(
    String((await runOnce()).detail),
    /^The row account_secret acct_\w+\/NORTHWIND of the database was changed/,
  );
  await signAgain(db(), "account_secret");
  assert.match(String((await runOnce()).detail), refused);
  await leaveOnce();
  assert.deepEqual(trap.all, []);
  assert.ok(!bench.installation.logs().includes(VALUE));
  await db().query(`update account_secret set origins = array_remove(origins, $1::text)`, [trap.url]);
  await signAgain(db(), "account_secret");
  await plantVersion("strat_run", { token_url: `${bench.target.url}/token` });
  await plantVersion("strat_form", { token_url: `${bench.target.url}/token` });
});

test("a sealed secret opens nowhere else: under another name, in another account, or after it was replaced", async () => {
  await set("globex", "NORTHWIND", trap.url);
  const acme = `account_id = (select id from account where slug = 'acme')`;
  const [first] = await db().query<{ sealed: Buffer }>(
    `select sealed from account_secret where ${acme} and name = 'NORTHWIND'`,
  );
  const moved = /the secret NORTHWIND can't be opened/;
  for (const from of ["globex", "acme"]) {
    if (from === "acme") await set("acme", "OTHER", trap.url);
    await db().query(
      `update account_secret set (sealed, kid, value_id) = (select sealed, kid, value_id from account_secret other
         where other.account_id = (select id from account where slug = $1) and other.name = $2)
       where ${acme} and name = 'NORTHWIND'`,
      [from, from === "acme" ? "OTHER" : "NORTHWIND"],
    );
    await signAgain(db(), "account_secret");
    assert.match(String((await runOnce()).detail), moved);
    assert.match((await command("doctor")).stdout, /these account secrets can't be opened.*\/NORTHWIND/);
  }
  await set("acme", "NORTHWIND", bench.target.url);
  await db().query(`update account_secret set sealed = $1 where ${acme} and name = 'NORTHWIND'`, [
    first?.sealed,
  ]);
  assert.match(String((await runOnce()).detail), moved);
  await set("acme", "NORTHWIND", bench.target.url);
  assert.equal((await runOnce()).status.status, "completed");
  assert.deepEqual(trap.all, []);
  assert.match((await command("doctor")).stdout, /the master key opens all 3 account secrets/);
});

test("a rotation reseals it with its origins", async () => {
  const kid = /^Added (\S+) /.exec((await command("master-key", "add")).stdout)?.[1] ?? "";
  assert.equal((await command("master-key", "promote", kid)).code, 0);
  const rewrapped = await command("master-key", "rewrap");
  assert.equal(rewrapped.code, 0, rewrapped.stderr);
  assert.deepEqual(await db().query("select distinct kid from account_secret"), [{ kid }]);
  const run = await runOnce();
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.match((await command("doctor")).stdout, /the master key opens all 3 account secrets/);
});

test("set, list and delete: the value goes in and never comes out, each effect is on record, and without its entry there is none", async () => {
  const entries = async () =>
    (
      await db().query<{ text: string }>(
        `select concat_ws(' ', actor_kind, action, subject_id, detail) as text from audit_entry
         where action like 'secret.%' and subject_id = 'PAYPAL' order by occurred_at, id`,
      )
    ).map(({ text }) => text.replace(/,?"row":"account_secret\/acct_\w+\/PAYPAL","serial":\d+/, ""));
  const main = fileURLToPath(new URL("../../src/main.mjs", import.meta.url));
  const setting = "secrets set --account acme PAYPAL --for".split(" ");
  const arguments_ = [main, ...setting, "https://a.example", "https://b.example"];
  const env = { ...foreignEnvironment(), ...bench.installation.environment };
  const printed = execFileSync(process.execPath, arguments_, {
    env,
    input: `${VALUE}\r\n`,
    stdio: ["pipe", "pipe", "pipe"],
  });
  assert.equal(String(printed), "Set the secret PAYPAL of acme, for https://a.example, https://b.example.\n");
  assert.equal(
    await set("acme", "PAYPAL", "https://a.example"),
    "Replaced the secret PAYPAL of acme, for https://a.example.\n",
  );
  const listed = await command("secrets", "list", "--account", "acme");
  assert.match(listed.stdout, /acme +PAYPAL +https:\/\/a\.example +\d{4}-/);
  assert.ok(!(listed.stdout + (await command("secrets", "list", "--json")).stdout).includes(VALUE));

  await db().query(
    `create or replace function refuse_audit() returns trigger language plpgsql as $$ begin raise exception 'no audit'; end $$;
     create trigger refuse_audit before insert on audit_entry for each row when (new.action like 'secret.%') execute function refuse_audit()`,
  );
  const row = async () => await db().query(`select * from account_secret where name = 'PAYPAL'`);
  const kept = await row();
  assert.equal((await command(...setting, "https://c.example", "--file", valueFile())).code, 1);
  assert.equal((await command("secrets", "delete", "--account", "acme", "PAYPAL")).code, 1);
  assert.deepEqual(await row(), kept);
  await db().query("drop trigger refuse_audit on audit_entry");

  assert.equal((await command("secrets", "delete", "--account", "acme", "PAYPAL")).code, 0);
  assert.equal((await command("secrets", "delete", "--account", "acme", "PAYPAL")).code, 1);
  assert.deepEqual(await entries(), [
    'cli secret.set PAYPAL {"change":"created","origins":"https://a.example https://b.example"}',
    'cli secret.set PAYPAL {"change":"replaced","origins":"https://a.example"}',
    "cli secret.delete PAYPAL {}",
  ]);
});

const WRONG: readonly (readonly [RegExp, string, string, string])[] = [
  [/^The name of a secret must consist/, "a-b", "https://a.example", "v"],
  [/^LATCHKEY_X is the name of a variable of the service/, "LATCHKEY_X", "https://a.example", "v"],
  [/must be scheme, host and port only; write https:\/\/a\.example/, "A", "https://a.example/token", "v"],
  [/must begin with https:/, "A", "http://a.example", "v"],
  [/must begin with https:/, "A", "ftp://a.example", "v"],
  [/contains a wildcard/, "A", "https://*.example", "v"],
  [/is not an origin/, "A", "a.example", "v"],
  [/^The value of A is empty/, "A", "https://a.example", "\n"],
  [/^The value of A contains a line break/, "A", "https://a.example", "one\ntwo\n"],
];

test("what is wrong with a secret is told with the remedy and without its value, and nothing is kept", async () => {
  for (const [reason, name, origin, value] of WRONG) {
    const more = ["--for", origin, "--file", valueFile(value)];
    const { code, stderr } = await command("secrets", "set", "--account", "acme", name, ...more);
    assert.equal(code, 1, stderr);
    assert.match(stderr, reason);
    const file = join(bench.installation.dataFolder, "wrong.json");
    writeFileSync(
      file,
      JSON.stringify({ acme: { [name]: { value: value.replace(/\n$/, ""), origins: [origin] } } }),
    );
    await assert.rejects(
      bench.installation.serve({ LATCHKEY_CLIENT_SECRETS_FILE: file }),
      /has an error in acme\//,
    );
  }
  assert.deepEqual(await db().query(`select 1 from account_secret where name = 'A'`), []);
});

test("a strategy from before, whose secret is a variable: it goes on, is named, and is taken over with its origins", async () => {
  const { installation } = bench;
  await bench.apply(
    strategy("strat_old", `${MACHINE.replace("NORTHWIND", "OLD")}, token_url: "{TARGET}/token"`),
  );
  await bench.apply(itemsBlueprint("old-items", "strat_old"));
  await db().query(
    `update strategy_version set document = jsonb_set(document::jsonb, '{login}',
       (document::jsonb -> 'login') - 'client_secret' || '{"client_secret_env":"OLD_SECRET"}'::jsonb)::text
     where strategy_id = 'strat_old'`,
  );
  await signAgain(db(), "strategy_version");
  const named =
    /acme\/strat_old takes its client's secret from the variable OLD_SECRET.*latchkey secrets import-env/;
  const environment = { ...installation.environment, OLD_SECRET: VALUE };
  const withVariable = async (...arguments_: string[]) => await runCommand(arguments_, environment);
  assert.match((await withVariable("doctor")).stdout, named);
  // Nothing is set here: nothing is changed.
  const left = await command("secrets", "import-env");
  assert.equal(left.code, 1);
  assert.match(left.stderr, /OLD_SECRET of acme\/strat_old was not imported: the variable is not set here/);

  await bench.service.end();
  const service = await installation.serve({ OLD_SECRET: VALUE, UNNAMED: VALUE });
  const caller = openCaller(service.url, bench.key);
  assert.match(installation.logs(), named);
  const runOld = async () => {
    const credential = await connect(caller, "strat_old", {});
    const { body } = await caller.post("/blueprints/old-items/trigger", { credential_id: credential });
    const { body: ended } = await caller.waitForRun(body.id);
    const [row] = await db().query<{ detail: string | null }>(
      `select error_detail as detail from run where id = $1`,
      [body.id],
    );
    return { status: ended.status as string, detail: String(row?.detail) };
  };
  assert.equal((await runOld()).status, "completed");
  // What is written into the database while the service runs names no new variable, and no new place for one.
  const old = { client_secret_env: "OLD_SECRET", token_url: `${bench.target.url}/token` };
  await plantVersion("strat_old", { ...old, token_url: `${trap.url}/token` });
  assert.match((await runOld()).detail, /the secret OLD_SECRET may not be sent to/);
  await plantVersion("strat_old", { client_secret_env: "UNNAMED", token_url: `${trap.url}/token` });
  assert.match((await runOld()).detail, /UNNAMED is not set, or no strategy of the account named it when/);
  assert.deepEqual(trap.all, []);
  await plantVersion("strat_old", old);
  // Its document may be changed, and retired, as long as the login stays.
  const login = `grant: client_credentials, client_secret_env: OLD_SECRET, token_url: "{TARGET}/token"`;
  const changed = `${strategy("strat_old", login)}\nretired: true\nname: Old`;
  assert.deepEqual(await bench.refusals(changed), []);
  assert.match(
    String(await bench.refusals(changed.replace("/token", "/other"))),
    /login\.client_secret_env nothing defines where/,
  );
  await bench.apply(`${strategy("strat_old", login)}\nname: Old`);

  const taken = await withVariable("secrets", "import-env");
  assert.equal(taken.code, 0, taken.stderr);
  assert.match(
    taken.stdout,
    new RegExp(`Imported OLD_SECRET of acme/strat_old as the secret OLD_SECRET, for ${bench.target.url}\\.`),
  );
  assert.ok(!(taken.stdout + taken.stderr).includes(VALUE));
  const [version] = await db().query<{ document: string }>(
    `select document from strategy_version join strategy on id = strategy_id and current_version = version where id = 'strat_old'`,
  );
  assert.match(String(version?.document), /"client_secret":\{"secret":"OLD_SECRET"\}/);
  assert.doesNotMatch(String(version?.document), /client_secret_env/);
  assert.doesNotMatch((await withVariable("doctor")).stdout, /strat_old/);
  assert.equal(
    (await withVariable("secrets", "import-env")).stdout,
    "No strategy names an environment variable.\n",
  );
  assert.equal((await runOld()).status, "completed");
  // A version that still names the variable gets the secret, and with it the origins.
  await plantVersion("strat_old", { client_secret_env: "OLD_SECRET", token_url: `${trap.url}/token` });
  assert.match((await runOld()).detail, /the secret OLD_SECRET may not be sent to/);
  assert.deepEqual(trap.all, []);
});
