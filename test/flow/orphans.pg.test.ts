// docs/decisions/0029: what a process that died has left in the store and in the scratch folder is swept.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { moveClock } from "../clock.ts";
import { until } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation, type ServiceProcess } from "../service.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "./target.ts";

const UPLOADS = `blueprint: uploads
account: acme
nodes:
  - { id: a, type: input, refKey: a }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;

let target: Target;
let installation: Installation & AsyncDisposable;
let key: string;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url), UPLOADS);
  key = await installation.createKey("acme");
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

/** The files of the store, by the first part of their key. */
function stored(prefix: string): readonly string[] {
  const folder = join(installation.dataFolder, "objects", prefix);
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
}

async function upload(caller: Caller, content = "[]"): Promise<string> {
  const form = new FormData();
  form.set("a", new Blob([content]), "rows.json");
  const { status, body } = await caller.post("/blueprints/uploads/trigger", form);
  assert.equal(status, 202);
  return body.id;
}

/** The worker's own job, as its timetable adds it, and the counts that it logs. */
async function sweep(): Promise<{ seen: number; removed: number; unfinished: number }> {
  const lines = (): string[] =>
    installation
      .logs()
      .split("\n")
      .filter((line) => line.includes('"swept the object store"'));
  const before = lines().length;
  await installation.database.db.query("select graphile_worker.add_job('sweep_objects')");
  await until("the sweep has run", () => lines().length > before);
  return JSON.parse(lines().at(-1) ?? "") as { seen: number; removed: number; unfinished: number };
}

test("an upload whose process is killed before COMMIT is swept after 24 hours; what rows name stays", async () => {
  const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: "trigger.before_insert=kill" }, [
    "api",
  ]);
  await assert.rejects(upload(openCaller(dying.url, key)));
  assert.equal(await dying.end("SIGKILL"), null);
  const [orphan = "", ...others] = stored("inputs");
  assert.ok(orphan !== "" && others.length === 0, "the upload was staged, and nobody names it");

  const service = await installation.serveProcess();
  const caller = openCaller(service.url, key);
  // Too large for the row of a result.
  const text = "x".repeat(10_000);
  const run = await caller.waitForRun(await upload(caller, JSON.stringify([{ n: 1, text }])));
  assert.equal(run.body.status, "completed");
  const named = [...stored("inputs"), ...stored("results")].filter((file) => file !== orphan);
  assert.ok(named.length >= 2, "input and result are in the store");
  // What a killed process was in the middle of writing, and a file that is none of ours.
  const half = `${orphan}.0123456789ab.part`;
  const foreign = join(installation.dataFolder, "objects", "README");
  for (const file of [half, foreign]) writeFileSync(file, "x");

  assert.deepEqual(await countsOf(sweep()), { removed: 0, unfinished: 0 });
  await moveClock(installation.database.db, "23 hours 50 minutes");
  assert.deepEqual(await countsOf(sweep()), { removed: 0, unfinished: 0 });
  assert.ok(existsSync(orphan));
  await moveClock(installation.database.db, "24 hours 10 minutes");
  assert.deepEqual(await countsOf(sweep()), { removed: 1, unfinished: 1 });
  for (const gone of [orphan, half]) assert.equal(existsSync(gone), false, gone);
  for (const file of [...named, foreign]) assert.ok(existsSync(file), file);
  assert.deepEqual(await countsOf(sweep()), { removed: 0, unfinished: 0 });
  const results = await caller.get(`/blueprint-runs/${run.body.id}/results?deliveryMethod=direct`);
  assert.deepEqual(results.body.results.out.records[0].data, { n: 1, text });
  await service.end();
  await moveClock(installation.database.db, "0 hours");
});

async function countsOf(
  swept: Promise<{ removed: number; unfinished: number }>,
): Promise<{ removed: number; unfinished: number }> {
  const { removed, unfinished } = await swept;
  return { removed, unfinished };
}

test("more orphans than a page are swept in one go, those of every kind", async () => {
  const service = await installation.serveProcess();
  const [account] = await installation.database.db.query<{ id: string }>("select id from account");
  const places = {
    inputs: (index: number) => String(index).padStart(24, "0"),
    steps: (index: number) => `run_planted/${String(index).padStart(16, "0")}`,
    results: (index: number) => `run_planted/${String(index).padStart(16, "0")}.json.br`,
  };
  // More than a page of a listing of each, and no more in all than a sweep may remove by itself.
  const ofEach = { inputs: 600, steps: 200, results: 200 };
  for (const [kind, nameOf] of Object.entries(places)) {
    for (let index = 0; index < ofEach[kind as keyof typeof ofEach]; index++) {
      const file = join(installation.dataFolder, "objects", kind, account?.id ?? "", nameOf(index));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
      utimesSync(file, 1_000, 1_000);
    }
  }
  const before = stored("").length;
  assert.equal((await sweep()).removed, 1_000);
  assert.equal(stored("").length, before - 1_000);
  await service.end();
});

test("scratch folders of claims that nobody holds are gone at the next start; that of a run under way stays", async () => {
  const service: ServiceProcess = await installation.serveProcess();
  const caller = openCaller(service.url, key);
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const hold = target.hold((request) => request.path === "/second");
  const { body } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
  await hold.reached;
  const scratch = join(installation.dataFolder, "scratch");
  const planted = {
    held: `${body.id}-1-aaaaaa`,
    earlier: `${body.id}-0-bbbbbb`,
    unknown: `run_${"0".repeat(24)}-1-cccccc`,
    foreign: "notes",
  };
  for (const name of Object.values(planted)) {
    mkdirSync(join(scratch, name), { recursive: true });
    writeFileSync(join(scratch, name, "file"), "x");
  }
  const second = await installation.serveProcess();
  const isThere = (name: string): boolean => existsSync(join(scratch, name));
  await until("the others' are gone", () => !isThere(planted.earlier) && !isThere(planted.unknown));
  assert.ok(isThere(planted.held) && isThere(planted.foreign));
  hold.release();
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
  await second.end();
  await service.end();
});
