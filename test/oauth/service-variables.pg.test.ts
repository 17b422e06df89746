// SECURITY.md: the service's own keys leave the process by no document, however it got into the database.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { generateSigningKey } from "#lib/signing.ts";
import { readEnvironmentSecret, SETTINGS, takeEnvironment } from "#service/settings/settings.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import { openBench, type Bench } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { runLatchkey } from "../service-process.ts";
import { signAgain } from "../sign-again.ts";
import { itemsBlueprint, Visitor } from "./oauth-setup.ts";

/** Who collects what is sent elsewhere. */
let trap: Target;
let bench: Bench;

const strategy = (id: string, login: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields: [{ key: secret, type: password }]
login: { type: oauth2, client_id: x, client_secret: "{{ $credential.secret }}", token_url: "{TARGET}/token", ${login} }`;

before(async () => {
  trap = await openTarget();
  const documents = [
    strategy("strat_run", "grant: client_credentials"),
    strategy("strat_form", 'authorization_url: "{TARGET}/authorize"'),
    itemsBlueprint("items", "strat_run"),
  ];
  // As containers have them: every key of the service comes by the environment.
  bench = await openBench(documents, "account: acme\nname: Acme", {
    LATCHKEY_MASTER_KEY: generateMasterKey().fileText,
    LATCHKEY_SIGNING_KEY: generateSigningKey(),
    LATCHKEY_OIDC_ISSUER: "http://127.0.0.1:1",
    LATCHKEY_OIDC_CLIENT_ID: "latchkey",
    LATCHKEY_OIDC_CLIENT_SECRET: "oidc-secret-canary-7Yk2",
    AWS_SECRET_ACCESS_KEY: "aws-secret-canary-3Lq8",
    PGPASSWORD: "pg-password-canary-1Ws5",
  });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await trap?.[Symbol.asyncDispose]();
});

/** Another version of the strategy, in force at once, that no `apply` of this program has seen. */
async function plantVersion(strategyId: string, variable: string): Promise<void> {
  const login = {
    type: "oauth2",
    client_id: "x",
    client_secret_env: variable,
    token_url: `${trap.url}/token`,
  };
  await bench.installation.database.db.query(
    `with planted as (
       insert into strategy_version (account_id, strategy_id, version, document)
       select account_id, strategy_id, version + 1,
         jsonb_set(document::jsonb, '{login}', (document::jsonb -> 'login') - 'client_secret' || $2::jsonb)::text
       from strategy_version where strategy_id = $1 order by version desc limit 1 returning version)
     update strategy set current_version = (select version from planted) where id = $1`,
    [strategyId, JSON.stringify(login)],
  );
  // As of an earlier program that took the document: of a row of somebody else, nothing is read at all.
  await signAgain(bench.installation.database.db, "strategy", "strategy_version");
}

const PLANTED = [
  "LATCHKEY_MASTER_KEY",
  "LATCHKEY_SIGNING_KEY",
  "LATCHKEY_OIDC_CLIENT_SECRET",
  "DATABASE_URL",
  "PGPASSWORD",
  "AWS_SECRET_ACCESS_KEY",
];

for (const variable of PLANTED) {
  test(`a strategy row that names ${variable} sends nothing: a run fails, and nobody leaves for a sign-in`, async () => {
    const credential = await bench.connect("strat_run", { secret: "own" });
    await plantVersion("strat_run", variable);
    const run = await bench.run("items", { credential_id: credential });
    assert.deepEqual(trap.all, []);
    assert.equal(run.status.status, "failed");
    assert.match(String(run.detail), new RegExp(`${variable} is one of the service's own variables`));
    await plantVersion("strat_form", variable);
    const { body: session } = await bench.caller.post("/credential-sessions", { strategy_id: "strat_form" });
    await assert.rejects(new Visitor().leave(session.hosted_url, { secret: "own" }), /stayed: 502/);
    assert.deepEqual(trap.all, []);
  });
}

test("a document that names a variable is refused, whatever variable it is", async () => {
  for (const variable of [...PLANTED, "NORTHWIND_CLIENT_SECRET"]) {
    const login = `type: oauth2, grant: client_credentials, client_id: x, client_secret_env: ${variable}, token_url: "${trap.url}/token"`;
    const document = `strategy: strat_new\naccount: acme\nhosts: ["${trap.url}"]\nlogin: { ${login} }`;
    assert.match(
      String(await bench.refusals(document)),
      /login\.client_secret_env (nothing defines where|`\w+` is one of the service's own variables)/,
    );
  }
  assert.deepEqual(trap.all, []);
});

test("no setting of the service, nor one of PostgreSQL or of AWS, is read for a document, in whatever case it is written", () => {
  const own = [...SETTINGS.map(({ name }) => name), "PGPASSWORD", "PGSSLKEY", "AWS_SESSION_TOKEN"];
  for (const name of [...own, ...own.map((each) => each.toLowerCase())])
    assert.equal(readEnvironmentSecret(name, { [name]: "value" }), null, name);
  assert.equal(readEnvironmentSecret("NORTHWIND", { NORTHWIND: " value " })?.reveal(), "value");
});

test("what is secret leaves the environment once it is read; what is read stays with who has read it", () => {
  const secret = SETTINGS.filter((setting) => setting.isSecret === true).map(({ name }) => name);
  assert.deepEqual(secret.toSorted(), [
    "DATABASE_DIRECT_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_URL",
    "LATCHKEY_API_KEY",
    "LATCHKEY_MASTER_KEY",
    "LATCHKEY_OIDC_CLIENT_SECRET",
    "LATCHKEY_SIGNING_KEY",
    "LATCHKEY_SMTP_PASSWORD",
    "LATCHKEY_TOKEN",
  ]);
  const all = Object.fromEntries([...SETTINGS.map(({ name }) => [name, "value"]), ["PATH", "/bin"]]);
  const surroundings = { ...all };
  assert.deepEqual(takeEnvironment(surroundings), all);
  assert.deepEqual(
    Object.keys(all).filter((name) => !(name in surroundings)),
    SETTINGS.filter(({ isSecret }) => isSecret === true).map(({ name }) => name),
  );
});

test("code that the service loads, and every child, finds none of its keys in the environment", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-variables-"));
  try {
    const [nodeFile, seen] = [join(folder, "own.ts"), join(folder, "seen.json")];
    writeFileSync(
      nodeFile,
      `import { writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
writeFileSync(${JSON.stringify(seen)}, JSON.stringify([process.env, execFileSync("env").toString()]));
export default {};`,
    );
    writeFileSync(join(folder, "account.yaml"), "account: acme\nname: Acme\n");
    const keys = {
      LATCHKEY_MASTER_KEY: "canary-of-the-master-key",
      LATCHKEY_SIGNING_KEY: "canary-of-the-signing-key",
      LATCHKEY_OIDC_CLIENT_SECRET: "canary-of-the-client-secret",
      DATABASE_URL: "postgres://canary-of-the-database@127.0.0.1:1/x",
    };
    await runLatchkey(["validate", "-f", folder], { ...keys, LATCHKEY_NODE_FILES: nodeFile });
    const found = readFileSync(seen, "utf8");
    assert.match(found, /LATCHKEY_NODE_FILES/);
    assert.ok(!found.includes("canary-of"), found);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
