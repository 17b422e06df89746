// docs/remote.md#sign-in: `latchkey login` on a machine that has nothing of the installation, approved in the dashboard.
import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openOperatorStage, type OperatorStage, type Someone } from "../operator/stage.ts";
import { eventually } from "../eventually.ts";
import type { CommandResult } from "../service.ts";
import { latchkey, newFolder } from "./program.ts";

let stage: OperatorStage;
let someone: Someone;
let elsewhere: string;
before(async () => {
  stage = await openOperatorStage();
  someone = await stage.operator("operator");
  await stage.giveSecondFactor(someone);
  elsewhere = newFolder();
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  if (elsewhere) rmSync(elsewhere, { recursive: true, force: true });
});

const configDir = (): string => join(elsewhere, "config");
const loginsFile = (): string => join(configDir(), "logins.json");

/** On a machine that has no token, no database and no key. */
async function there(
  code: number,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const own = {
    LATCHKEY_DATA_DIR: join(elsewhere, "no-such-folder"),
    LATCHKEY_CONFIG_DIR: configDir(),
    ...environment,
  };
  const result = await latchkey(words, own, { cwd: elsewhere });
  assert.equal(result.code, code, `latchkey ${words.join(" ")}: ${result.stdout}${result.stderr}`);
  return result;
}

/** What the operator does in the dashboard, once the command line waits. */
async function decide(path: string, body?: object): Promise<void> {
  const code = await eventually("a command line waits", async () => {
    const rows = await stage.db.query<{ code: string }>(
      "select user_code as code from operator_device_sign_in where token_id is null and denied_at is null",
    );
    return rows[0]?.code;
  });
  const browser = await stage.holding(someone);
  const { status, text } = await browser.send("POST", `/device-sign-ins/${code}/${path}`, body);
  assert.ok(status < 300, text);
}

const login = async (code: number, ...words: string[]): Promise<CommandResult> =>
  await there(code, ["login", "--url", stage.service.url, ...words]);

const approve = async () => await decide("approve", { role: "operator", lifetime_seconds: 3_600 });

const tokenOf = (): string =>
  JSON.parse(readFileSync(loginsFile(), "utf8")).services[stage.service.url].token;

test("`login` shows a code, keeps the approved token for its owner alone, and every remote command uses it", async () => {
  const [{ stdout, stderr }] = await Promise.all([login(0, "--name", "ana@laptop"), approve()]);
  assert.match(stderr, /Open http\S+\/dashboard\/device\?code=(\w{4}-\w{4}) in a browser[\s\S]*\n {4}\1\n/);
  assert.match(
    stdout,
    new RegExp(`^Signed in to ${stage.service.url} as ${someone.email} \\(operator\\), until `),
  );
  assert.deepEqual([statSync(loginsFile()).mode & 0o777, statSync(configDir()).mode & 0o777], [0o600, 0o700]);
  assert.equal((stdout + stderr).includes(tokenOf().slice(4, 20)), false, "the token was printed");
  // Without naming the service, by naming it, and by the variable that other programs may have.
  await there(0, ["runs", "list"]);
  await there(0, ["runs", "list", "--url", stage.service.url]);
  await there(0, ["runs", "list"], { LATCHKEY_URL: stage.service.url });
  const { body } = await (await stage.holding(someone)).send("GET", "/me");
  assert.equal(body.email, someone.email);
  // A machine of an installation works on its own one, unless it is told otherwise.
  const own = await stage.installation.command("runs", "list");
  assert.equal(own.code, 0, own.stderr);
});

test("a command that is only for the installation's machine does not become remote by a login", async () => {
  assert.match((await there(1, ["tokens", "list"])).stderr, /There is no Latchkey database/);
});

test("a file that others can read is refused", async () => {
  chmodSync(loginsFile(), 0o644);
  assert.match((await there(1, ["runs", "list"])).stderr, /other users can read it. Run: chmod 600/);
  chmodSync(loginsFile(), 0o600);
});

test("`logout` revokes the token and forgets it", async () => {
  const token = tokenOf();
  assert.match((await there(0, ["logout"])).stdout, /^Signed out of .*: the token was revoked\.\n$/);
  assert.equal((await stage.withToken(token, "GET", "/runs")).status, 401);
  assert.equal(existsSync(loginsFile()) && readFileSync(loginsFile(), "utf8").includes("lko_"), false);
  assert.match((await there(1, ["logout"])).stderr, /There is no login/);
  assert.match((await there(1, ["runs", "list", "--url", stage.service.url])).stderr, /latchkey login --url/);
});

test("a refused sign-in, and one without a service, keep nothing", async () => {
  const [{ stderr }] = await Promise.all([login(1), decide("deny")]);
  assert.match(stderr, /The sign-in was refused in the dashboard/);
  assert.match((await there(2, ["login"])).stderr, /Name the service/);
  assert.match((await there(1, ["login", "--url", "http://latchkey.example.org"])).stderr, /not encrypted/);
  assert.equal(readFileSync(loginsFile(), "utf8").includes("lko_"), false);
});
