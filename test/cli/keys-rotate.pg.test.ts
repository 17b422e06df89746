// docs/decisions/0027: a rotation makes a second key and ends the first after an overlap.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { must } from "#lib/assert.ts";
import { moveClock } from "../clock.ts";
import { eventually, until } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { install, type CommandResult, type Installation, type RunningService } from "../service.ts";
import { runCommand } from "./program.ts";

const DOCUMENTS = [
  "account: acme\nname: Acme\nrate_limit: off",
  ...["echo", "other"].map(
    (key) => `blueprint: ${key}
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }`,
  ),
];
const HOUR_MS = 3_600_000;

let installation: Installation & AsyncDisposable;
/** Two processes: what one command changes holds for both. */
let services: readonly RunningService[];

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  services = [await installation.serve({}, ["api"]), await installation.serve({}, ["api"])];
});
after(async () => await installation?.[Symbol.asyncDispose]());

const run = async (exitCode: number, ...arguments_: string[]): Promise<CommandResult> =>
  await runCommand(installation, exitCode, arguments_);

interface Made {
  readonly id: string;
  readonly key: string;
  readonly replaces: string;
  readonly replacedEndsAt: string;
}

async function newKey(...options: string[]): Promise<Made> {
  const { stdout } = await run(0, "keys", "create", "--account", "acme", "--json", ...options);
  return JSON.parse(stdout) as Made;
}

async function rotate(id: string, ...options: string[]): Promise<Made> {
  return JSON.parse((await run(0, "keys", "rotate", id, "--json", ...options)).stdout) as Made;
}

/** What a trigger is answered by each of the two processes. */
async function statuses(key: string, blueprint = "echo"): Promise<readonly number[]> {
  return await Promise.all(
    services.map(
      async ({ url }) =>
        (await openCaller(url, key).post(`/blueprints/${blueprint}/trigger`, { words: [] })).status,
    ),
  );
}

async function moveClockOn(by: string): Promise<void> {
  await moveClock(installation.database.db, by);
  // Who a key belongs to is known for a moment, and counts within a second at the latest.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}

interface Row {
  readonly name: string;
  readonly blueprintKeys: readonly string[] | null;
  readonly scopes: readonly string[] | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
}

async function rowOf(id: string): Promise<Row> {
  const [row] = await installation.database.db.query<Row>(
    `select name, blueprint_keys as "blueprintKeys", scopes, created_at as "createdAt", expires_at as "expiresAt"
     from api_key where id = $1`,
    [id],
  );
  return must(row, "the key's row");
}

async function now(): Promise<number> {
  const [row] = await installation.database.db.query<{ now: Date }>("select app_now() as now");
  return Number(must(row, "the time").now);
}

/** Whether it is so long after what was done between two times. */
const isAfter = (end: number, hours: number, [first, last]: readonly [number, number]): boolean =>
  end - hours * HOUR_MS >= first && end - hours * HOUR_MS <= last;

const countKeys = async (): Promise<number> =>
  (await installation.database.db.query("select 1 from api_key")).length;

const lineOf = async (id: string): Promise<string> =>
  must(
    (await run(0, "keys", "list")).stdout.split("\n").find((line) => line.startsWith(id)) ?? null,
    "a line",
  );

test("both keys work during the overlap, on every process; after it the old one is 401 and the new one goes on", async () => {
  const old = await newKey("--name", "Backend", "--blueprints", "echo");
  const before = await countKeys();
  const began = await now();
  const made = await rotate(old.id, "--overlap", "2h");
  const between = [began, await now()] as const;
  assert.equal(await countKeys(), before + 1);
  assert.equal(made.replaces, old.id);
  const audited = await installation.database.db.query(
    `select 1 from audit_entry where action = 'key.rotate' and subject_id = $1`,
    [old.id],
  );
  assert.equal(audited.length, 1);
  const [oldRow, newRow] = [await rowOf(old.id), await rowOf(made.id)];
  assert.deepEqual([newRow.name, newRow.blueprintKeys, newRow.expiresAt], ["Backend", ["echo"], null]);
  assert.deepEqual(newRow.scopes, ["runs"]);
  assert.equal(oldRow.expiresAt?.toISOString(), made.replacedEndsAt);
  assert.ok(isAfter(Number(oldRow.expiresAt), 2, between), String(oldRow.expiresAt));
  const listed = await lineOf(old.id);
  assert.ok(
    listed.includes(
      `Active, expires ${made.replacedEndsAt.slice(0, 16).replace("T", " ")} UTC, replaced by ${made.id}`,
    ),
  );
  assert.match(await lineOf(made.id), / Active /);
  for (const key of [old.key, made.key]) {
    assert.deepEqual(await statuses(key), [202, 202]);
    assert.deepEqual(await statuses(key, "other"), [403, 403], "the Blueprints are the old key's");
  }
  await moveClockOn("119 minutes");
  assert.deepEqual(await statuses(old.key), [202, 202]);
  await moveClockOn("2 hours 1 minute");
  assert.deepEqual(await statuses(old.key), [401, 401]);
  assert.deepEqual(await statuses(made.key), [202, 202]);
  assert.match(await lineOf(old.id), new RegExp(`Expired, replaced by ${made.id}`));
  await moveClockOn("0 hours");
});

test("without --json standard output is the new key alone; the overlap is a day unless one is given; --name renames", async () => {
  const old = await newKey("--name", "Old");
  const began = await now();
  const { stdout, stderr } = await run(0, "keys", "rotate", old.id, "--name", "New");
  const between = [began, await now()] as const;
  assert.match(stdout, /^lk_[0-9A-Za-z]+\n$/);
  const [, id = "", end = ""] =
    /API key (key_\w+) replaces key_\w+, which works until (\S+Z)\. It is shown only once/.exec(stderr) ?? [];
  const row = await rowOf(id);
  assert.equal(row.name, "New");
  assert.ok(isAfter(Date.parse(end), 24, between), end);
  assert.deepEqual(await statuses(stdout.trim()), [202, 202]);
  assert.equal(installation.logs().includes(stdout.trim()), false);
});

test("--overlap 0 revokes the old key at once, on every process", async () => {
  const old = await newKey();
  assert.deepEqual(await statuses(old.key), [202, 202]);
  const made = await rotate(old.id, "--overlap", "0");
  await refusedEverywhere(old.key);
  assert.deepEqual(await statuses(made.key), [202, 202]);
  assert.match(await lineOf(old.id), new RegExp(` Revoked, replaced by ${made.id}`));
});

test("a revoked key is refused by every process, those that have just used it", async () => {
  const { id, key } = await newKey();
  assert.deepEqual(await statuses(key), [202, 202]);
  await run(0, "keys", "revoke", id);
  await refusedEverywhere(key);
});

/** Within a second: `flow/promised-times.pg.test.ts`. */
async function refusedEverywhere(key: string): Promise<void> {
  await eventually(
    "it is refused",
    async () => ((await statuses(key)).every((status) => status === 401) ? true : undefined),
    60_000,
  );
}

test("an expiry stays the same policy: the new key lives as long as the old one was made for, the old one no longer than it had", async () => {
  const old = await newKey("--expires", "10h");
  await moveClockOn("9 hours");
  const made = await rotate(old.id, "--overlap", "2h");
  const [oldRow, newRow] = [await rowOf(old.id), await rowOf(made.id)];
  assert.equal(Number(oldRow.expiresAt) - Number(oldRow.createdAt), 10 * HOUR_MS, "not later than its own");
  assert.equal(Number(newRow.expiresAt) - Number(newRow.createdAt), 10 * HOUR_MS);
  const other = await newKey("--expires", "10h");
  const shorter = await rowOf((await rotate(other.id, "--expires", "1h")).id);
  assert.equal(Number(shorter.expiresAt) - Number(shorter.createdAt), HOUR_MS);
  await moveClockOn("0 hours");
});

test("what can't be rotated is refused with the remedy and changes nothing", async () => {
  const revoked = await newKey();
  await run(0, "keys", "revoke", revoked.id);
  const expired = await newKey("--expires", "1h");
  await moveClockOn("61 minutes");
  const rotated = await newKey();
  const successor = await rotate(rotated.id);
  const before = await countKeys();
  const refused: [string, RegExp][] = [
    ["key_nothing", /no API key key_nothing.*keys list/],
    [revoked.id, /is revoked, and can't be rotated.*keys create/],
    [expired.id, /expired at \d{4}-\S+Z, and can't be rotated.*keys create/],
    [rotated.id, new RegExp(`already been rotated: ${successor.id} replaces it\\. Rotate that one`)],
  ];
  for (const [id, says] of refused) assert.match((await run(1, "keys", "rotate", id)).stderr, says);
  for (const wrong of ["2", "soon", "-1h", "91d", ""])
    assert.match((await run(2, "keys", "rotate", rotated.id, `--overlap=${wrong}`)).stderr, /30m/, wrong);
  await run(2, "keys", "rotate");
  assert.equal(await countKeys(), before);
  await moveClockOn("0 hours");
});

test("of two rotations at once one makes a key, the other is told which", async () => {
  const old = await newKey();
  const before = await countKeys();
  const { db } = installation.database;
  let sent: readonly Promise<CommandResult>[] = [];
  await db.transaction(async (tx) => {
    await tx.query("select 1 from api_key where id = $1 for no key update", [old.id]);
    sent = [1, 2].map(async () => await installation.command("keys", "rotate", old.id, "--json"));
    await until("both wait for the key's row", async () => {
      const waiting = await db.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return waiting.length === sent.length;
    });
  });
  const both = await Promise.all(sent);
  assert.deepEqual(new Set(both.map(({ code }) => code)), new Set([0, 1]));
  assert.equal(await countKeys(), before + 1);
  const made = JSON.parse(both.map(({ stdout }) => stdout).join("")) as Made;
  assert.match(both.map(({ stderr }) => stderr).join(""), new RegExp(`${made.id} replaces it`));
  assert.deepEqual(await statuses(made.key), [202, 202]);
});

test("a new key has the old one's scopes, unless it is made with others", async () => {
  const old = await newKey("--scope", "sessions");
  const made = await rotate(old.id);
  assert.deepEqual((await rowOf(made.id)).scopes, ["sessions"]);
  const wider = await rotate(made.id, "--scope", "runs,sessions");
  assert.deepEqual((await rowOf(wider.id)).scopes, ["runs", "sessions"]);
});
