// docs/remote.md: the command line of another machine, which has a URL and a token, and neither database nor keys.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { REMOTE_COMMANDS } from "#cli/program.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { freePort } from "../free-port.ts";
import { install, type CommandResult, type Installation, type RunningService } from "../service.ts";
import { expectHeldJson, listCommands } from "./held-surface.ts";
import { latchkey, newFolder, runCommand } from "./program.ts";

const ACCOUNT = "account: acme\nname: Acme\n";
const STRATEGY = `strategy: strat_acme
account: acme
fields: [{ key: token, type: password }]
login: { type: none }
`;
const ECHO = `blueprint: echo
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }
`;
const ASKS = `blueprint: asks
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: Look at it, editable: true }
  - { id: out, type: output, refKey: out, from: look }
`;

let installation: Installation & AsyncDisposable;
let service: RunningService;
let caller: Caller;
let elsewhere: string;
let token: string;

before(async () => {
  installation = await install();
  await installation.apply(ACCOUNT, STRATEGY, ECHO, ASKS);
  service = await installation.serve();
  caller = openCaller(service.url, await installation.createKey("acme"));
  elsewhere = newFolder();
  token = await newToken("admin");
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  rmSync(elsewhere, { recursive: true, force: true });
});

async function newToken(role: string): Promise<string> {
  const words = ["tokens", "create", "--role", role, "--name", `${role} elsewhere`, "--expires", "1h"];
  return (await runCommand(installation, 0, words)).stdout.trim();
}

/** On a machine that has a URL and a token, and nothing of the installation. */
async function there(
  code: number,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = { LATCHKEY_URL: service.url, LATCHKEY_TOKEN: token },
): Promise<CommandResult> {
  const data = join(elsewhere, "no-such-folder");
  const result = await latchkey(words, { LATCHKEY_DATA_DIR: data, ...environment }, { cwd: elsewhere });
  assert.equal(result.code, code, `latchkey ${words.join(" ")}: ${result.stdout}${result.stderr}`);
  assert.equal((result.stdout + result.stderr).includes(token.slice(4, 20)), false, "the token was printed");
  assert.equal(existsSync(data), false, "a data folder was made");
  return result;
}

const here = async (code: number, words: readonly string[]): Promise<CommandResult> =>
  await runCommand(installation, code, words);

const file = (text: string): string => {
  const path = join(elsewhere, "config.yaml");
  writeFileSync(path, text);
  return path;
};

/** The last use of a key moves with each request. */
const steady = (text: string): string =>
  text.replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\.\d{3}Z)?/g, "TIME");

/** Both machines say the same. */
async function same(...words: string[]): Promise<string> {
  const [ours, theirs] = [await here(0, words), await there(0, words)];
  assert.equal(steady(theirs.stdout), steady(ours.stdout), words.join(" "));
  return theirs.stdout;
}

async function runOf(blueprint: string, input: object): Promise<string> {
  const { body } = await caller.post(`/blueprints/${blueprint}/trigger`, input);
  return body.id;
}

/** A run that waits for a person. */
async function waiting(): Promise<{ readonly run: string; readonly review: string }> {
  const run = await runOf("asks", { data: '[{"n":1},{"n":2}]' });
  const review = await eventually(
    "it waits",
    async () =>
      (
        await installation.database.db.query<{ id: string }>(
          "select id from review where run_id = $1 and status = 'open'",
          [run],
        )
      )[0]?.id,
    PATIENCE_MS,
  );
  return { run, review };
}

test("every command of the list exists, and the other ones that need an installation are refused with the remedy", async () => {
  const names = (await listCommands()).map(([name]) => name);
  for (const name of REMOTE_COMMANDS) assert.ok(names.includes(name), name);
  for (const words of [
    ["serve"],
    ["operators", "list"],
    ["tokens", "list"],
    ["doctor"],
    ["master-key", "status"],
  ]) {
    const { stderr } = await there(2, words);
    assert.match(stderr, /works only on the machine of the installation.* without LATCHKEY_TOKEN/);
  }
  // What needs no installation works as before.
  assert.match((await there(0, ["validate", "-f", file(ACCOUNT)])).stdout, /is valid/);
});

test("`plan` ends with 3 when something would change, as on the service's machine, in the same words", async () => {
  const changed = file(`${ACCOUNT}---\n${ECHO}timeout: 10m\n`);
  const [ours, theirs] = [await here(3, ["plan", "-f", changed]), await there(3, ["plan", "-f", changed])];
  assert.equal(theirs.stdout, ours.stdout);
  assert.equal(theirs.stderr, ours.stderr);
  const json = ["plan", "--json", "-f", changed];
  const planned = await there(3, json);
  assert.equal(planned.stdout, (await here(3, json)).stdout);
  expectHeldJson("plan", {
    ...JSON.parse(planned.stdout),
    changes: [
      {
        ...JSON.parse(planned.stdout).changes[1],
        differences: [{ path: "timeout", before: null, after: "10m" }],
      },
    ],
  });
  await there(0, ["plan", "-f", file(`${ACCOUNT}---\n${ECHO}`)]);
  const wrong = file(ECHO.replace("from: rows", "from: rowz"));
  const refused = await there(1, ["plan", "-f", wrong]);
  assert.equal(refused.stderr, (await here(1, ["plan", "-f", wrong])).stderr);
});

test("`apply` applies, and with the `base` of a plan refuses what somebody has changed since", async () => {
  const timeout = (minutes: number): string => file(`${ECHO}timeout: ${minutes}m\n`);
  const { base } = JSON.parse((await there(3, ["plan", "--json", "-f", timeout(11)])).stdout);
  const applied = await there(0, ["apply", "--base", base, "-f", timeout(11)]);
  assert.equal(applied.stdout, '~ update    blueprint acme/echo\n      + timeout: "11m"\n');
  // Somebody else publishes between another plan and its `apply`.
  const stale = JSON.parse((await there(3, ["plan", "--json", "-f", timeout(12)])).stdout).base;
  await here(0, ["apply", "-f", timeout(13)]);
  for (const machine of [there, here]) {
    const { stderr } = await machine(1, ["apply", "--base", stale, "-f", timeout(12)]);
    assert.match(stderr, /The plan is out of date.*Nothing was changed\. Plan again\./);
  }
  assert.match((await there(0, ["export", "--account", "acme"])).stdout, /timeout: 13m/);
  await there(2, ["apply", "--base", "x", "-f", timeout(12)]);
  const refused = file(ECHO.replace("from: rows", "from: rowz"));
  const { stderr } = await there(1, ["apply", "-f", refused]);
  assert.equal(stderr, (await here(1, ["apply", "-f", refused])).stderr);
  const [entry] = await installation.database.db.query(
    "select actor_kind as kind from audit_entry where action = 'config.apply' and actor_kind <> 'cli' limit 1",
  );
  assert.deepEqual(entry, { kind: "operator_token" });
});

test("`export` gives the same documents, which `plan` takes without a change", async () => {
  const documents = await same("export", "--account", "acme");
  await there(0, ["plan", "-f", file(documents)]);
  const folder = join(elsewhere, "exported");
  await there(0, ["export", "-o", folder]);
  assert.match(readFileSync(join(folder, "acme/blueprints/echo.yaml"), "utf8"), /^blueprint: echo/);
});

test("runs: listed, shown, watched, their results written, repeated, purged, cancelled", async () => {
  const id = await runOf("echo", { words: '[{"n":1},{"n":2}]' });
  await there(0, ["runs", "watch", id]);
  for (const options of [[], ["--json"]]) {
    await same("runs", "list", "--blueprint", "echo", "--status", "completed", ...options);
    await same("runs", "show", id, ...options);
  }
  assert.match(await same("runs", "results", id), /^\{"data":\{"n":1\}.*\n\{"data":\{"n":2\}.*\n$/);
  const output = join(elsewhere, "words.csv");
  await there(0, ["runs", "results", id, "--key", "words", "--format", "csv", "--output", output]);
  assert.match(readFileSync(output, "utf8"), /^"n",/);
  assert.match((await there(1, ["runs", "results", id, "--key", "none"])).stderr, /has no result none/);
  const again = JSON.parse((await there(0, ["runs", "again", id, "--json"])).stdout);
  expectHeldJson("runs again", again);
  await there(0, ["runs", "watch", again.id]);
  assert.equal((await there(0, ["runs", "purge", id])).stdout, `Purged ${id}.\n`);
  assert.match((await there(1, ["runs", "purge", id])).stderr, /purged/);
  const { run } = await waiting();
  assert.equal((await there(0, ["runs", "cancel", run])).stdout, `Cancelled ${run}.\n`);
  assert.match((await there(1, ["runs", "cancel", run])).stderr, /already cancelled/);
  assert.match((await there(1, ["runs", "show", "run_nothing"])).stderr, /run/i);
});

test("reviews: listed, shown, approved with edits, rejected; the token's name is recorded", async () => {
  const first = await waiting();
  const second = await waiting();
  for (const options of [[], ["--json"], ["--run", first.run]]) await same("reviews", "list", ...options);
  for (const options of [[], ["--json"]]) await same("reviews", "show", first.review, ...options);
  await same("reviews", "writes");
  const edits = join(elsewhere, "edits.ndjson");
  writeFileSync(edits, '{"ordinal": 0, "data": {"n": 7}}\n');
  const approve = ["reviews", "approve", first.review, "--exclude", "1"];
  assert.match((await there(2, [...approve, "--by", "ana"])).stderr, /the token's name is recorded/);
  const approved = await there(0, [...approve, "--edits", edits]);
  assert.equal(approved.stdout, `Approved, with 1 records edited and 1 excluded; ${first.run} continues.\n`);
  await there(0, ["runs", "watch", first.run]);
  assert.match(await same("runs", "results", first.run), /^\{"data":\{"n":7\}.*\n$/);
  await there(0, ["reviews", "reject", second.review, "--reason", "wrong"]);
  assert.match(
    await same("reviews", "show", second.review),
    /Rejected.* by token admin elsewhere at .*: wrong/,
  );
  assert.match((await there(1, approve)).stderr, /\S/);
  const nothing = [first.run, "look", "0", "--happened"];
  assert.match((await there(1, ["reviews", "write", ...nothing])).stderr, /waits for a decision/);
  await there(1, ["reviews", "decide", "acme", "asks", "look", "--happened"]);
});

test("credentials and keys: listed, tested, unlocked, deleted; created, rotated, revoked", async () => {
  const credential = await connect(caller, "strat_acme", { token: "t" });
  for (const options of [[], ["--json"], ["--account", "acme"]])
    await same("credentials", "list", ...options);
  const started = JSON.parse((await there(0, ["credentials", "test-login", credential, "--json"])).stdout);
  expectHeldJson("credentials test-login", started);
  assert.equal((await there(0, ["credentials", "unlock", credential])).stdout, `Unlocked ${credential}.\n`);
  assert.equal((await there(0, ["credentials", "delete", credential])).stdout, `Deleted ${credential}.\n`);
  await there(1, ["credentials", "delete", credential]);

  const words = ["keys", "create", "--account", "acme", "--blueprints", "echo", "--expires", "90d", "--json"];
  const made = JSON.parse((await there(0, words)).stdout);
  expectHeldJson("keys create", made);
  assert.equal(
    (await openCaller(service.url, made.key).post("/blueprints/echo/trigger", { words: [] })).status,
    202,
  );
  const rotated = JSON.parse((await there(0, ["keys", "rotate", made.id, "--json"])).stdout);
  expectHeldJson("keys rotate", rotated);
  assert.equal(rotated.replaces, made.id);
  await there(0, ["keys", "revoke", rotated.id]);
  await same("keys", "list", "--account", "acme");
  await there(1, ["keys", "revoke", "key_nothing"]);
});

test("the token's role counts, and a revoked token ends with the next command", async () => {
  const viewer = await newToken("viewer");
  const as = { LATCHKEY_URL: service.url, LATCHKEY_TOKEN: viewer };
  await there(0, ["runs", "list"], as);
  assert.match(
    (await there(1, ["apply", "-f", file(`${ECHO}timeout: 9m\n`)], as)).stderr,
    /The role viewer does not have this permission \(config\.apply\)/,
  );
  const { items } = JSON.parse((await here(0, ["tokens", "list", "--json"])).stdout);
  expectHeldJson("tokens list", { items, next_cursor: null });
  await here(0, ["tokens", "revoke", items.find(({ name }: any) => name === "viewer elsewhere").id]);
  assert.match((await there(1, ["runs", "list"], as)).stderr, /The operator token is invalid/);
});

test("`--url` names the service; a token is required, and can come from a file", async () => {
  const tokenFile = join(elsewhere, "token");
  writeFileSync(tokenFile, `${token}\n`);
  await there(0, ["--url", service.url, "runs", "list"], { LATCHKEY_TOKEN_FILE: tokenFile });
  await there(0, ["runs", "list", "--url", `${service.url}/`], { LATCHKEY_TOKEN: token });
  assert.match((await there(1, ["runs", "list", "--url", service.url], {})).stderr, /set LATCHKEY_TOKEN/);
  await there(2, ["runs", "list", "--url", "nonsense"], { LATCHKEY_TOKEN: token });
  // A URL alone may be another program's: this machine's installation counts.
  assert.match(
    (await there(1, ["runs", "list"], { LATCHKEY_URL: service.url })).stderr,
    /set LATCHKEY_TOKEN as well/,
  );
});

test("a service that is away, is another one, redirects, or would get the token unencrypted is refused with the remedy", async () => {
  const answers: Readonly<Record<string, [number, Record<string, string>, string]>> = {
    "/html": [200, { "Content-Type": "text/html" }, "<p>"],
    "/gone": [404, { "Content-Type": "text/html" }, "<p>"],
    "/moved": [307, { Location: "https://elsewhere.example/" }, ""],
  };
  const seen: (string | undefined)[] = [];
  const other = createServer(({ url = "", headers }, response) => {
    seen.push(headers.authorization);
    const [status, head, body] = answers[`/${url.split("/")[1]}`] ?? [404, {}, ""];
    response.writeHead(status, head).end(body);
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  const says = async (url: string): Promise<string> =>
    (await there(1, ["runs", "list", "--url", url], { LATCHKEY_TOKEN: token })).stderr;
  try {
    for (const path of ["/html", "/gone"])
      assert.match(await says(`http://127.0.0.1:${port}${path}`), /not as a Latchkey service does/);
    assert.match(await says(`http://127.0.0.1:${port}/moved`), /redirects to another address/);
  } finally {
    other.close();
  }
  assert.equal(seen.length, 3);
  assert.match(await says(`http://127.0.0.1:${await freePort()}`), /can't be reached \(ECONNREFUSED\)/);
  assert.match(await says("http://latchkey.example.org"), /public and not encrypted/);
});
