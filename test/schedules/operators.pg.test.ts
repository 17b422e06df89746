// docs/schedules.md: schedules of Blueprints' documents, and what operators see and do by the operator API and the command line.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fireSchedules } from "#actions/schedules/fire-schedules.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { moveClock } from "../clock.ts";
import type { Browser, OperatorAnswer } from "../operator/browser.ts";
import { openOperatorStage, type OperatorStage } from "../operator/stage.ts";
import { endRuns, firesOf, firingOf, stopClock } from "./stage.ts";

let stage: OperatorStage;
let browser: Browser;
let caller: Caller;

const NODES = `nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;
const OPEN = `blueprint: open\naccount: acme\nmetadata: [{ name: po, required: true }]\n`;
const NIGHTLY = `{ key: nightly, cron: "0 2 * * *", time_zone: UTC, trigger: { po: "7" } }`;
const document = (...schedules: readonly string[]): string =>
  `${OPEN}schedules: [${schedules.join(", ")}]\n${NODES}`;

before(async () => {
  stage = await openOperatorStage({}, ["api"]);
  await stage.installation.apply(
    "account: acme",
    "strategy: strat_one\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    `${OPEN}${NODES}`,
    `blueprint: one\naccount: acme\ncredentials: { it: { strategy: strat_one } }\n${NODES}`,
  );
  const admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
});
after(async () => await stage?.[Symbol.asyncDispose]());

/** An answer of an operation, compared with its schema when it is good. */
async function ask(id: string, path: string): Promise<OperatorAnswer> {
  const operation = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
  const answer = await browser.send(operation.method.toUpperCase(), `/schedules${path}`);
  if (answer.status === operation.status && operation.answer)
    assert.ok(matchesSchema(operation.answer, answer.body), answer.text);
  return answer;
}

const idOf = async (key: string): Promise<string> =>
  (await stage.db.query<{ id: string }>("select id from schedule where key = $1", [key]))[0]?.id ?? "";

const command = async (code: number, ...words: readonly string[]) =>
  await runCommand(stage.installation, code, ["schedules", ...words]);

async function onDocument(code: number, name: "apply" | "plan", text: string) {
  const file = join(stage.installation.dataFolder, "open.yaml");
  writeFileSync(file, text);
  return await runCommand(stage.installation, code, [name, "-f", file]);
}

const audited = async (): Promise<readonly string[]> =>
  (
    await stage.db.query<{ entry: string }>(
      `select action || ' by ' || actor_kind as entry from audit_entry where action like 'schedule.%' order by occurred_at, id`,
    )
  ).map(({ entry }) => entry);

async function fire(at: string): Promise<void> {
  await stopClock(stage.installation, at);
  await fireSchedules(firingOf(stage.installation));
}

test("a Blueprint's document creates, changes and deletes its schedules, and applying it again changes nothing", async () => {
  await stopClock(stage.installation, "2026-11-23T12:00:00Z");
  const before = (await audited()).length;
  assert.match((await onDocument(3, "plan", document(NIGHTLY))).stdout, /schedules/);
  await onDocument(0, "apply", document(NIGHTLY, NIGHTLY.replace("nightly", "weekly")));
  await onDocument(0, "plan", document(NIGHTLY, NIGHTLY.replace("nightly", "weekly")));
  const { body } = await caller.get("/schedules/nightly");
  assert.deepEqual(
    [body.blueprint_key, body.cron, body.missed, body.overlap, body.next_at],
    ["open", "0 2 * * *", "once", "skip", "2026-11-24T02:00:00.000Z"],
  );
  await fire("2026-11-24T02:00:00Z");
  const daily = NIGHTLY.replace("0 2", "30 2").replace("key", "missed: all, key");
  await onDocument(0, "apply", document(daily));
  assert.deepEqual(await firesOf(stage.installation, "nightly"), ["11-24T02:00 run"], "it is the same one");
  assert.equal((await caller.get("/schedules/weekly")).status, 404);
  assert.equal((await caller.get("/schedules/nightly")).body.next_at, "2026-11-24T02:30:00.000Z");
  assert.deepEqual((await audited()).slice(before), [
    "schedule.create by cli",
    "schedule.create by cli",
    "schedule.delete by cli",
    "schedule.update by cli",
  ]);
});

test("only the document changes what it has, and takes over what the API made for the same Blueprint", async () => {
  const terms = { blueprint_key: "open", cron: "0 2 * * *", time_zone: "UTC", trigger: { po: "7" } };
  assert.equal((await caller.put("/schedules/nightly", terms)).status, 409);
  assert.equal((await caller.delete("/schedules/nightly")).status, 409);
  assert.equal((await caller.put("/schedules/made", terms)).status, 201);
  assert.equal(
    (await caller.put("/schedules/of-one", { ...terms, blueprint_key: "one", trigger: {} })).status,
    422,
  );
  await onDocument(0, "apply", document(NIGHTLY, NIGHTLY.replace("nightly", "made")));
  assert.equal((await caller.put("/schedules/made", terms)).status, 409);
  await onDocument(0, "apply", document(NIGHTLY));
  assert.equal((await caller.get("/schedules/made")).status, 404);
});

test("what could never run is refused at its place, with everything that is wrong, and nothing is changed", async () => {
  const credential = await connect(caller, "strat_one", { token: "t" });
  const taken = { blueprint_key: "one", cron: "0 0 * * *", time_zone: "UTC" };
  await caller.put("/schedules/taken", { ...taken, trigger: { credential_id: credential } });
  const refused = async (schedules: string, ...expected: readonly RegExp[]): Promise<void> => {
    const { stderr } = await onDocument(1, "apply", document(schedules));
    for (const each of expected) assert.match(stderr, each);
  };
  await refused(
    `{ key: a b, cron: "0 2 * *", time_zone: Berlin, missed: never, trigger: { pos: "1" } }`,
    /schedules\[0\]\.key must be a key of letters/,
    /schedules\[0\]\.cron must have five fields|schedules\[0\]\.time_zone must be the name of a time zone/,
    /schedules\[0\]\.missed/,
    /schedules\[0\]\.trigger\.pos .*did you mean `po`/,
    /schedules\[0\]\.trigger the required metadata item `po` is missing/,
  );
  await refused(`${NIGHTLY}, ${NIGHTLY}`, /schedules\[1\]\.key another schedule has the key `nightly`/);
  await refused(
    NIGHTLY.replace("nightly", "taken"),
    /schedules\[0\]\.key the Blueprint `one` has a schedule/,
  );
  const stray = NIGHTLY.replace(`"7"`, `"7", credential_id: cred_unknown`);
  for (const name of ["plan", "apply"] as const)
    assert.match(
      (await onDocument(1, name, document(stray))).stderr,
      /schedules\[0\]\.trigger\.credential_id `credential_id` must name|schedules\[0\]\.trigger\.credential_id/,
    );
  assert.equal((await caller.get("/schedules/nightly")).body.status, "active");
});

test("operators see schedules in pages and by state, with the next five times and the last ten runs", async () => {
  await moveClock(stage.db, "0");
  await stopClock(stage.installation, "2026-11-24T12:00:00Z");
  const hourly = { blueprint_key: "open", cron: "0 * * * *", time_zone: "UTC", trigger: { po: "9" } };
  await caller.put("/schedules/hourly", hourly);
  for (let hour = 13; hour < 25; hour++) {
    await fire(new Date(Date.UTC(2026, 10, 24, hour)).toISOString());
    await endRuns(stage.installation);
  }
  const id = await idOf("hourly");
  const { body } = await ask("readSchedule", `/${id}`);
  assert.deepEqual(
    body.next,
    [1, 2, 3, 4, 5].map((hour) => `2026-11-25T0${hour}:00:00.000Z`),
  );
  assert.equal(body.runs.length, 10);
  assert.deepEqual([body.runs[0].due_at, body.runs[0].is_manual], ["2026-11-25T00:00:00.000Z", false]);
  assert.ok(!JSON.stringify(body).includes('"9"'), "nothing of the trigger");
  const first = (await ask("listSchedules", "?limit=2")).body;
  const second = (await ask("listSchedules", `?limit=2&cursor=${first.next_cursor}`)).body;
  assert.equal(second.next_cursor, null);
  assert.deepEqual(
    [...first.items, ...second.items].map(({ key }: { key: string }) => key),
    ["hourly", "taken", "nightly"],
  );
  const keysOf = async (query: string) =>
    (await ask("listSchedules", query)).body.items.map(({ key }: { key: string }) => key);
  assert.deepEqual(await keysOf("?blueprint=one"), ["taken"]);
  await stage.db.query(
    "update credential set login_rejections = 3, login_locked_until = app_now() + '1 hour'",
  );
  assert.deepEqual(await keysOf("?state=locked"), ["taken"]);
  assert.deepEqual(await keysOf("?state=active&account=acme"), ["hourly", "nightly"]);
  assert.deepEqual(await keysOf("?state=paused"), []);
  const shown = await command(0, "show", await idOf("taken"));
  assert.match(shown.stdout, /^state +locked: its credential's logins were rejected$/m);
  const refused = await command(1, "run", await idOf("taken"));
  assert.match(refused.stderr, /is locked until .*Unlock it first/);
  await stage.db.query("update credential set login_rejections = 0, login_locked_until = null");
});

test("a paused schedule has no runs until it is resumed, whatever its document or the API say in the meantime", async () => {
  const id = await idOf("hourly");
  assert.equal((await ask("pauseSchedule", `/${id}/pause`)).status, 204);
  assert.equal((await ask("pauseSchedule", `/${id}/pause`)).status, 409);
  const put = await caller.put("/schedules/hourly", {
    blueprint_key: "open",
    cron: "30 * * * *",
    time_zone: "UTC",
    trigger: { po: "10" },
  });
  assert.deepEqual([put.status, put.body.paused_reason, put.body.next_at], [200, "operator", null]);
  await fire("2026-11-25T06:00:00Z");
  const shown = await command(0, "list", "--state", "paused");
  assert.match(shown.stdout, new RegExp(`^${id} +acme +hourly .*paused by an operator$`, "m"));
  assert.match((await command(0, "resume", id)).stdout, /^Resumed/);
  assert.match((await command(1, "resume", id)).stderr, /is not paused/);
  await fire("2026-11-25T06:30:00Z");
  const times = await firesOf(stage.installation, "hourly");
  assert.equal(times.at(-1), "11-25T06:30 run");
  assert.ok(!times.some((time) => time.startsWith("11-25T03")), "those that passed have no run");
  assert.deepEqual((await audited()).slice(-3), [
    "schedule.pause by operator",
    "schedule.update by api_key",
    "schedule.resume by cli",
  ]);
  await endRuns(stage.installation);
});

test("a run that an operator begins now is the schedule's, is none of its times, and counts as an earlier run", async () => {
  const id = await idOf("hourly");
  await stopClock(stage.installation, "2026-11-25T07:30:00Z");
  const begun = await ask("runSchedule", `/${id}/run`);
  assert.equal(begun.status, 201, begun.text);
  const again = JSON.parse((await command(0, "run", id, "--json")).stdout);
  assert.match(again.id, /^run_/);
  await fire("2026-11-25T07:30:00Z");
  assert.deepEqual((await firesOf(stage.installation, "hourly")).slice(-3), [
    "11-25T07:30 overlap",
    "11-25T07:30 manual",
    "11-25T07:30 manual",
  ]);
  const { body } = await ask("readSchedule", `/${id}`);
  assert.deepEqual(
    body.runs.slice(0, 2).map((run: any) => [run.id, run.is_manual, run.status]),
    [
      [again.id, true, "queued"],
      [begun.body.id, true, "queued"],
    ],
  );
  const shown = await runCommand(stage.installation, 0, ["runs", "show", begun.body.id]);
  assert.match(shown.stdout, /^schedule +hourly$/m);
  assert.deepEqual((await audited()).slice(-2), ["schedule.run by operator", "schedule.run by cli"]);
  await endRuns(stage.installation);
});

test("a schedule whose Blueprint is retired, or whose credential is gone, says so and does not resume", async () => {
  await fire("2026-11-25T08:30:00Z");
  await onDocument(0, "apply", `${document(NIGHTLY)}\nretired: true`);
  await fire("2026-11-26T08:30:00Z");
  const shown = await command(0, "show", await idOf("nightly"));
  assert.match(shown.stdout, /^state +paused: its Blueprint is retired$/m);
  assert.match((await command(1, "resume", await idOf("nightly"))).stderr, /is retired. Restore it first/);
  await onDocument(0, "apply", document(NIGHTLY));
  assert.equal((await caller.get("/schedules/nightly")).body.status, "active", "the document restores it");
  const { body } = await ask("readSchedule", `/${await idOf("taken")}`);
  assert.equal((await caller.delete(`/credentials/${body.credentials[0]}`)).status, 204);
  const refused = await ask("resumeSchedule", `/${await idOf("taken")}/resume`);
  assert.equal(refused.status, 409);
  assert.match(refused.text, /refuses the trigger.*credential/);
  const list = await command(0, "list", "--account", "acme", "--json");
  const reasons = JSON.parse(list.stdout).items.map((each: any) => `${each.key} ${each.paused_reason}`);
  assert.ok(reasons.includes("taken credential_deleted"), reasons.join());
});
