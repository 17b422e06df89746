// The breaker of logins: after some rejections in a row the target is left alone, so that no run locks an end user out there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { moveClock } from "../clock.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const NODES = `
- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }
- { id: out, type: output, refKey: out, from: read }`;
const slot = (id: string) => `credentials: { it: { strategy: ${id} } }`;

const strategy = (id: string, more: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields: [{ key: word, type: password }]
login:
  type: http
  steps: [{ request: { method: POST, url: /login, form: { w: "{{ $credential.word }}" } } }]
  ${more}`;

before(async () => {
  bench = await openBench([
    strategy("strat_default", ""),
    blueprint("default", NODES, slot("strat_default")),
    strategy("strat_short", "lockout: { after: 1, cool_down: 10m }\n  cache: 1h"),
    blueprint("short", NODES, slot("strat_short")),
    strategy("strat_off", "lockout: off"),
    blueprint("off", NODES, slot("strat_off")),
  ]);
  bench.target.on("GET /api/read", { json: [] });
});
after(() => bench?.[Symbol.asyncDispose]());

const logins = () => bench.target.seen("POST /login").length;
const answer = (status: number, more: object = {}) => bench.target.on("POST /login", { status, ...more });
const connect = async (id: string) => await bench.connect(id, { word: "canary-word" });
const run = async (key: string, id: string) => await bench.run(key, { credential_id: id });

test("after two rejections no run touches the target; the caller sees the one fixed sentence, the operator what to do", async () => {
  answer(401);
  const id = await connect("strat_default");
  const first = await run("default", id);
  assert.doesNotMatch(String(first.detail), /unlock/);
  const second = await run("default", id);
  assert.match(
    String(second.detail),
    new RegExp(
      `expected status 200 to 299, got 401 \\(2 rejected logins in a row: .* after 20.*Z, with a new credential, or after \`latchkey credentials unlock ${id}\``,
    ),
  );
  const before = logins();
  const third = await run("default", id);
  assert.equal(logins(), before, "the target was not asked");
  assert.match(
    String(third.detail),
    /^strat_default: not tried: the target rejected the last 2 logins of cred_/,
  );
  assert.deepEqual([first.status.error, third.status.error], [second.status.error, second.status.error]);
  assert.deepEqual(third.steps.at(-1), "failed/failed");
  const line = bench.installation
    .logs()
    .split("\n")
    .find((each) => each.includes("logins of a credential locked"));
  const { credentialId, rejections, lockedUntil } = JSON.parse(line ?? "{}");
  assert.deepEqual([credentialId, rejections], [id, 2]);
  assert.match(lockedUntil, /^20\d\d-.*Z$/);
  assert.ok(!bench.installation.logs().includes("canary-word"));
  // Another credential of the strategy is not held up.
  await run("default", await connect("strat_default"));
  assert.equal(logins(), before + 1);
});

test("an operator sees the lock, and unlocks it", async () => {
  answer(401);
  const id = await connect("strat_default");
  await run("default", id);
  await run("default", id);
  const listed = await bench.installation.command("credentials", "list", "--account", "acme", "--json");
  const found = JSON.parse(listed.stdout).items.find((each: { id: string }) => each.id === id);
  assert.deepEqual(Object.keys(found).sort(), [
    "account",
    "created_at",
    "id",
    "is_logged_in",
    "locked_until",
    "name",
    "rejections",
    "strategy",
  ]);
  assert.deepEqual([found.account, found.strategy, found.rejections], ["acme", "strat_default", 2]);
  assert.match(found.locked_until, /Z$/);
  const table = await bench.installation.command("credentials", "list");
  assert.match(table.stdout, new RegExp(`${id} .*Locked until 20.*, 2 rejected logins`));
  assert.ok(!`${listed.stdout}${table.stdout}`.includes("canary"));
  assert.equal((await bench.installation.command("credentials", "unlock", id)).stdout, `Unlocked ${id}.\n`);
  const audited = await bench.installation.database.db.query(
    `select 1 from audit_entry where action = 'credential.unlock' and subject_id = $1`,
    [id],
  );
  assert.equal(audited.length, 1);
  answer(200);
  assert.equal((await run("default", id)).status.status, "completed");
  const unknown = await bench.installation.command("credentials", "unlock", "cred_none");
  assert.deepEqual([unknown.code, unknown.stderr.includes("There is no credential cred_none")], [1, true]);
});

test("a login that the target takes begins the count anew", async () => {
  const id = await connect("strat_default");
  for (const status of [401, 200, 401]) {
    answer(status);
    await run("default", id);
  }
  const before = logins();
  await run("default", id);
  assert.equal(logins(), before + 1);
});

test("what is no rejection is not counted: the target out of order, gone, or asking for patience", async () => {
  const id = await connect("strat_default");
  for (const [status, more] of [
    [503, {}],
    [500, {}],
    [429, {}],
    [200, { drop: true }],
  ] as const) {
    answer(status, more);
    await run("default", id);
  }
  const before = logins();
  answer(200);
  assert.equal((await run("default", id)).status.status, "completed");
  assert.equal(logins(), before + 1);
});

test("after the cool-down one login is tried, and a rejection locks again at once; by the database's clock", async (t) => {
  t.after(async () => await moveClock(bench.installation.database.db, "0"));
  answer(403);
  const id = await connect("strat_short");
  await run("short", id);
  const before = logins();
  await moveClock(bench.installation.database.db, "9 minutes");
  await run("short", id);
  assert.equal(logins(), before);
  await moveClock(bench.installation.database.db, "11 minutes");
  await run("short", id);
  await run("short", id);
  assert.equal(logins(), before + 1);
  await moveClock(bench.installation.database.db, "22 minutes");
  answer(200);
  assert.equal((await run("short", id)).status.status, "completed");
});

test("of ten runs at once, as many as it takes reach the target, and none more", async () => {
  answer(401, { delayMs: 30 });
  const id = await connect("strat_default");
  const before = logins();
  const runs = await Promise.all(Array.from({ length: 10 }, async () => await run("default", id)));
  assert.equal(logins() - before, 2);
  assert.equal(runs.filter(({ detail }) => detail?.includes("not tried")).length, 8);
});

test("lockout: off tries every time", async () => {
  answer(401);
  const id = await connect("strat_off");
  const before = logins();
  for (let count = 0; count < 3; count += 1) await run("off", id);
  assert.equal(logins(), before + 3);
});

test("apply checks the key", async () => {
  const problems = async (lockout: string) =>
    (await bench.refusals(strategy("strat_wrong", `lockout: ${lockout}`))).map((line) =>
      line.replace(/^\d+:\d+ /, ""),
    );
  assert.deepEqual(await problems("{ after: 3 }"), []);
  assert.deepEqual(await problems("{ after: 0 }"), ["login.lockout.after must be at least 1"]);
  assert.deepEqual(await problems("{ cool_down: 0 }"), ["login.lockout.cool_down must be longer than 0"]);
  assert.deepEqual(await problems("{ cooldown: 1h }"), [
    "login.lockout.cooldown unknown key `cooldown`; did you mean `cool_down`?",
  ]);
  assert.match(String(await problems("on")), /login\.lockout must be `off`, or/);
});
