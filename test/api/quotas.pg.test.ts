import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AccountQuotas } from "#actions/runs/account-quotas.ts";
import { purgeRunAsOperator } from "#actions/runs/purge-runs.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import { addUpStoredBytes, listAccountUsage, readStoredBytes } from "#db/account-usage.ts";
import { openLog } from "#lib/log.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { readConfig, requireSigningKey } from "#service/settings/settings.ts";
import { until } from "../eventually.ts";
import { openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

const QUIET = openLog({ level: "error", format: "json" }, { write: () => {} });

const documents = (account: string): readonly string[] => [
  `account: ${account}\nname: ${account}`,
  `blueprint: ${account}-list
account: ${account}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
  `blueprint: ${account}-file
account: ${account}
nodes:
  - { id: file, type: input, refKey: file, accepts: file }
  - { id: list, type: parse, from: file, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
  `blueprint: ${account}-review
account: ${account}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: gate, type: review, from: list }
  - { id: out, type: output, refKey: out, from: gate }`,
];

let installation: Installation & AsyncDisposable;
let key: string;
let otherKey: string;
let services: RunningService[] = [];

before(async () => {
  installation = await install();
  await installation.apply(...documents("acme"), ...documents("globex"));
  key = await installation.createKey("acme");
  otherKey = await installation.createKey("globex");
});
afterEach(async () => {
  for (const service of services) await service.end();
  services = [];
  await installation.database.db
    .query(`update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now()
    where ended_at is null`);
});
after(async () => await installation[Symbol.asyncDispose]());

async function serve(
  settings: Record<string, string>,
  roles: ("api" | "worker")[] = ["api"],
): Promise<string> {
  const service = await installation.serve(settings, roles);
  services.push(service);
  return service.url;
}

async function count(table: string): Promise<number> {
  const rows = await installation.database.db.query<{ count: number }>(
    `select count(*)::int as count from ${table}`,
  );
  return rows[0]?.count ?? 0;
}

const trigger = async (
  caller: Caller,
  body: object = {},
  idempotencyKey?: string,
  blueprint = "acme-list",
): Promise<ApiAnswer> =>
  await caller.post(
    `/blueprints/${blueprint}/trigger`,
    body,
    idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
  );

/** Again and again until it is taken: a place that is free again is seen at the next count. */
async function untilTaken(send: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  for (const end = performance.now() + 20_000; ; await sleep(100)) {
    const answer = await send();
    if (answer.status === 202 || performance.now() > end) return answer;
  }
}

const inputsOnDisk = (): number => {
  const folder = join(installation.dataFolder, "objects");
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile() && entry.parentPath.includes("/inputs/")).length;
};

test("of many triggers at once as many are taken as the account may have waiting; the others are 429 and lose nothing", async () => {
  const [runs, keys] = [await count("run"), await count("idempotency_key")];
  const url = await serve({ LATCHKEY_QUEUED_RUNS: "5" });
  const caller = openCaller(url, key);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => trigger(caller, {}, `many-${index}`)),
  );
  const refused = answers.filter(({ status }) => status === 429);
  const taken = answers.filter(({ status }) => status === 202);
  assert.deepEqual([taken.length, refused.length], [5, 15]);
  for (const { body, headers } of refused) {
    assert.equal(body.error.type, "rate_limit_exceeded");
    assert.equal(body.error.details[0].code, "queued_runs_quota");
    assert.match(body.error.message, /^5 runs of this account are already waiting/);
    assert.match(headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  }
  assert.deepEqual([await count("run"), await count("idempotency_key")], [runs + 5, keys + 5]);

  // A replay is no run.
  const first = answers.findIndex(({ status }) => status === 202);
  const replayed = await trigger(caller, {}, `many-${first}`);
  assert.deepEqual([replayed.status, replayed.text], [202, answers[first]?.text]);
  assert.equal(replayed.headers.get("idempotent-replay"), "true");
  const other = await trigger(openCaller(url, otherKey), {}, undefined, "globex-list");
  assert.equal(other.status, 202, "another account has a quota of its own");

  // Two places become free, and the keys that were refused are taken.
  for (const { body } of taken.slice(0, 2))
    assert.equal((await caller.post(`/blueprint-runs/${body.id}/cancel`)).status, 200);
  const keysRefused = [...answers.keys()].filter((index) => answers[index]?.status === 429);
  const [one, ...others] = keysRefused.map((index) => `many-${index}`);
  assert.equal((await untilTaken(async () => await trigger(caller, {}, one))).status, 202);
  const again: number[] = [];
  for (const name of others) again.push((await trigger(caller, {}, name)).status);
  assert.deepEqual([again[0], new Set(again.slice(1))], [202, new Set([429])]);
  assert.equal(
    await count("run where ended_at is null and account_id in (select id from account where slug = 'acme')"),
    5,
  );
});

test("what another process has let in counts, also for a replay that this one has not seen", async () => {
  const [one, other] = [
    await serve({ LATCHKEY_QUEUED_RUNS: "3" }),
    await serve({ LATCHKEY_QUEUED_RUNS: "3" }),
  ];
  const caller = openCaller(one, key);
  const runs: string[] = [];
  for (const name of ["a", "b", "c"]) {
    const { status, body } = await trigger(caller, {}, `two-${name}`);
    assert.equal(status, 202);
    runs.push(body.id);
  }
  // Whatever they wait for: their turn, another run of their credential, or their place in a line.
  const { db } = installation.database;
  await db.query("update run set waits_for = 'cred_busy' where id = $1", [runs[0]]);
  await db.query("update run set parked_at = app_now(), line = 'a line' where id = $1", [runs[1]]);
  const elsewhere = openCaller(other, key);
  assert.equal((await trigger(elsewhere)).status, 429);
  const replayed = await trigger(elsewhere, {}, "two-a");
  assert.deepEqual([replayed.status, replayed.headers.get("idempotent-replay")], [202, "true"]);
});

test("a trigger that came to nothing gives its place back; one whose end is not known keeps it until the next count", async () => {
  const { db } = installation.database;
  const [acme] = await db.query<{ id: string }>(`select id from account where slug = 'acme'`);
  const quotas = new AccountQuotas(db, { queuedRuns: 1, storedBytes: null }, QUIET);
  const open = () => quotas.open(acme?.id ?? "");
  const first = open();
  await first.take(0);
  await first.take(0);
  await assert.rejects(open().take(0), { status: 429 });
  first.settle(false);
  const second = open();
  await second.take(0);
  second.settle(true);
  await assert.rejects(open().take(0), { status: 429 });
});

test("over the quota of stored bytes a trigger is 422 and leaves nothing; what is purged makes room", async () => {
  const { db } = installation.database;
  const caller = openCaller(await serve({ LATCHKEY_STORED_MB: "1" }), key);
  const data = "x".repeat(600_000);
  const first = await trigger(caller, { data });
  assert.equal(first.status, 202);
  const refused = await trigger(caller, { data }, "stored");
  assert.equal(refused.status, 422);
  assert.equal(refused.body.error.type, "validation_error");
  assert.equal(refused.body.error.details[0].code, "stored_bytes_quota");
  assert.match(refused.body.error.message, /more than 1000000 bytes, .* purge/);

  const file = (bytes: number): FormData => {
    const form = new FormData();
    form.set("file", new Blob(["[]", " ".repeat(bytes - 2)]), "list.json");
    return form;
  };
  assert.equal((await trigger(caller, file(300_000), undefined, "acme-file")).status, 202);
  const files = inputsOnDisk();
  assert.equal((await trigger(caller, file(300_000), undefined, "acme-file")).status, 422);
  assert.equal(inputsOnDisk(), files, "the file of a refused trigger is gone");
  assert.equal((await trigger(caller, { data: "small" })).status, 202);

  const config = readConfig(installation.environment);
  const signing = openSigning(readSigningKey(requireSigningKey(config).reveal()));
  await caller.post(`/blueprint-runs/${first.body.id}/cancel`);
  await purgeRunAsOperator(
    { db, blobs: openLocalStore(join(config.dataDir, "objects")), signing },
    first.body.id,
  );
  assert.equal((await untilTaken(async () => await trigger(caller, { data }, "stored"))).status, 202);
});

test("what is counted is what is stored: inputs, objects of steps and of results, until they are purged", async () => {
  const { db } = installation.database;
  const caller = openCaller(await serve({}, ["api", "worker"]), key);
  const records = JSON.stringify(
    Array.from({ length: 2_000 }, (_, at) => ({ at, text: Math.random().toString(36) })),
  );
  const form = new FormData();
  form.set("file", new Blob([records]), "list.json");
  const runs = [
    await trigger(caller, form, undefined, "acme-file"),
    await trigger(caller, { data: records }),
    await trigger(caller, { data: "[1" }),
  ];
  const ends: string[] = [];
  for (const { body } of runs) ends.push((await caller.waitForRun(body.id)).body.status);
  assert.deepEqual(ends, ["completed", "completed", "failed"]);
  // Its records are kept for the reviewer.
  const reviewed = await trigger(caller, { data: records }, undefined, "acme-review");
  const isParked = async (): Promise<boolean> =>
    (await caller.get(`/blueprint-runs/${reviewed.body.id}/status`)).body.progress_step === "awaiting_review";
  await until("it waits for a review", isParked);
  const [acme] = await db.query<{ id: string }>(`select id from account where slug = 'acme'`);
  const accountId = acme?.id ?? "";
  const stored = async (): Promise<number> => {
    const rows = await db.query<{ bytes: number }>(
      `select (coalesce((select sum(size_bytes) from blob where account_id = $1), 0)
         + coalesce((select sum(octet_length(content)) from run_input where account_id = $1), 0))::float8 as bytes`,
      [accountId],
    );
    return rows[0]?.bytes ?? 0;
  };
  const purposes = await db.query<{ purpose: string }>(`select distinct purpose from blob order by 1`);
  assert.deepEqual(
    purposes.map(({ purpose }) => purpose),
    ["input", "result", "step"],
  );
  const all = (await listAccountUsage(db)).find(({ account }) => account === "acme");
  assert.equal(all?.storedBytes, await stored());
  await addUpStoredBytes(db);
  assert.equal(await count("account_usage_change"), 0);
  const ofAnother = `insert into account_usage_change (account_id, bytes) select id, $1 from account where slug = 'globex'`;
  await db.query(ofAnother, [7]);
  assert.equal(
    await readStoredBytes(db, accountId),
    await stored(),
    "what another account stores is not counted",
  );
  assert.equal(await count("account_usage_change"), 1);
  await db.query(ofAnother, [-7]);
  await addUpStoredBytes(db);

  const config = readConfig(installation.environment);
  const signing = openSigning(readSigningKey(requireSigningKey(config).reveal()));
  const blobs = openLocalStore(join(config.dataDir, "objects"));
  assert.equal((await caller.post(`/blueprint-runs/${reviewed.body.id}/cancel`)).status, 200);
  for (const { body } of [...runs, reviewed]) await purgeRunAsOperator({ db, blobs, signing }, body.id);
  assert.equal(await readStoredBytes(db, accountId), await stored());
});
