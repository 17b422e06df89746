// docs/metrics.md: what is measured is true, bounded and without secrets.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect } from "../caller.ts";
import { formsOf } from "../flow/canary-search.ts";
import { whyNoDebian } from "../debian-packages.ts";
import { until } from "../eventually.ts";
import { freePort } from "../free-port.ts";
import { openWorkload, work, type Left } from "../invariants/workload.ts";
import type { Bench } from "../documents/bench.ts";
import { testInAll } from "../tiers.ts";
import { startReceiver } from "../webhooks/stage.ts";
import { startPrometheus } from "./real-prometheus.ts";

const CANARY = "canary-of-the-metrics-83";
const PAGE = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");

let bench: Bench;
let left: Left;
let metricsUrl: string;
let url: string;

before(async () => {
  const port = await freePort();
  metricsUrl = `http://127.0.0.1:${port}/metrics`;
  bench = await openWorkload({ LATCHKEY_METRICS_PORT: String(port), LATCHKEY_ACCESS_LOG: "on" });
  url = bench.service.url;
});

after(async () => await bench?.[Symbol.asyncDispose]());

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

async function scrape(): Promise<{ readonly text: string; readonly samples: readonly Sample[] }> {
  const response = await fetch(metricsUrl);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  const samples = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line): Sample => {
      const [, name = "", labels = "", value = ""] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      assert.notEqual(name, "", line);
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = "", each = ""]) => [
        key,
        each,
      ]);
      return { name, labels: Object.fromEntries(pairs), value: value === "+Inf" ? Infinity : Number(value) };
    });
  return { text, samples };
}

const sum = (
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number =>
  samples
    .filter(
      (each) =>
        each.name === name && Object.entries(labels).every(([key, text]) => each.labels[key] === text),
    )
    .reduce((total, { value }) => total + value, 0);

test("the numbers are those of what was done", async () => {
  const { samples: earlier } = await scrape();
  const { caller } = bench;
  const credential = await connect(caller, "strat_it", { token: CANARY, code: "JBSWY3DPEHPK3PXP" });
  const form = new FormData();
  form.set("credential_id", credential);
  form.set("file", new Blob(["a,b\n1,2\n"], { type: "text/csv" }), `${CANARY}.csv`);
  const { body: run } = await caller.post("/blueprints/reads/trigger", form);
  assert.equal((await bench.caller.waitForRun(run.id)).body.status, "completed");
  const { body: failing } = await caller.post("/blueprints/fails/trigger", {});
  assert.equal((await bench.caller.waitForRun(failing.id)).body.status, "failed");
  assert.equal((await caller.as("lk_live_wrong").get(`/blueprint-runs/${run.id}/status`)).status, 401);
  const { samples } = await scrape();
  const grown = (name: string, labels = {}): number =>
    sum(samples, name, labels) - sum(earlier, name, labels);
  assert.equal(grown("latchkey_runs_completed_total"), 1);
  assert.equal(grown("latchkey_runs_failed_total"), 1);
  assert.equal(grown("latchkey_logins_total", { result: "ok" }), 1);
  assert.ok(grown("latchkey_outbound_requests_total", { result: "answered" }) >= 2);
  const requests = "latchkey_http_request_duration_seconds_count";
  assert.equal(grown(requests, { route: "/api/v1/blueprints/:blueprintKey/trigger", status: "202" }), 2);
  assert.equal(grown(requests, { route: "/api/v1/blueprint-runs/:runId/status", status: "401" }), 1);
  // A bucket counts what is in the ones below it, and the last one everything.
  const buckets = samples.filter(
    ({ name, labels }) =>
      name === "latchkey_http_request_duration_seconds_bucket" &&
      labels["route"] === "/api/v1/blueprint-runs/:runId/status" &&
      labels["status"] === "401",
  );
  assert.ok(buckets.every(({ value }, at) => at === 0 || value >= (buckets[at - 1]?.value ?? 0)));
  assert.equal(buckets.at(-1)?.labels["le"], "+Inf");
  assert.equal(sum(samples, "latchkey_last_backup_age_seconds"), Infinity);
  assert.equal(sum(samples, "latchkey_workers", { state: "alive" }), 1);
  assert.equal(sum(samples, "latchkey_database_up"), 1);
  const disk = { place: "data" };
  const [free, size] = ["free", "size"].map((of) => sum(samples, `latchkey_disk_${of}_bytes`, disk));
  assert.ok(free !== undefined && size !== undefined && free > 0 && free < size, `${free} of ${size} bytes`);
});

test("runs that wait are counted by their reason, with the age of the oldest", async () => {
  left = await work(bench);
  const { samples } = await scrape();
  assert.equal(sum(samples, "latchkey_runs_unfinished", { waits_for: "review" }), 1, left.parked);
  assert.equal(sum(samples, "latchkey_runs_unfinished", { waits_for: "write" }), 1, left.doubtful);
  const age = sum(samples, "latchkey_runs_oldest_seconds", { waits_for: "review" });
  assert.ok(age > 0 && age < 600, String(age));
});

test("attempts to deliver events are counted by their result, and what a worker leaves undone is late", async () => {
  await using receiver = Object.assign(await startReceiver(), {
    [Symbol.asyncDispose]: async () => await receiver.close(),
  });
  const { installation, caller } = bench;
  const { db } = installation.database;
  const create = async (to: string): Promise<void> => {
    const words = ["webhooks", "create", "--account", "acme", to, "--events", "run.failed"];
    const { code, stderr } = await installation.command(...words);
    assert.equal(code, 0, stderr);
  };
  await create(`${receiver.url}/works`);
  await create(`http://127.0.0.1:${await freePort()}/fails`);
  const { samples: earlier } = await scrape();
  const { body: run } = await caller.post("/blueprints/fails/trigger", {});
  assert.equal((await caller.waitForRun(run.id)).body.status, "failed");
  for (const result of ["delivered", "failed"])
    await until(`one attempt has ${result}`, async () => {
      const { samples } = await scrape();
      const name = "latchkey_webhook_attempts_total";
      return sum(samples, name, { result }) - sum(earlier, name, { result }) === 1;
    });
  await until("what came of them is written down", async () => {
    const rows = await db.query(
      `select 1 from webhook_endpoint endpoint join webhook_delivery on endpoint_id = endpoint.id
       where (delivered_at is not null) <> (failing_since is not null)`,
    );
    return rows.length === 2;
  });
  const lag = async (): Promise<number> => sum((await scrape()).samples, "latchkey_webhook_lag_seconds");
  // What fails is tried again later, which is no delay of ours.
  await db.query("update webhook_delivery set due_at = app_now() - interval '90 s' where due_at is not null");
  assert.equal(await lag(), 0);
  // Claimed, so that no worker delivers it meanwhile.
  await db.query(
    `update webhook_delivery set due_at = app_now() - interval '90 s' where due_at is not null;
     insert into webhook_claim (endpoint_id, event_ids, ends_at)
       select endpoint_id, array_agg(event_id), app_now() + interval '1 hour' from webhook_delivery where due_at is not null group by 1;
     update webhook_endpoint set failing_since = null`,
  );
  assert.ok((await lag()) >= 90, "an event that nobody delivers is late");
  await db.query(
    "delete from webhook_claim; delete from webhook_attempt; delete from webhook_delivery; delete from webhook_secret; delete from webhook_endpoint; delete from webhook_event",
  );
});

test("the page lists every metric with its labels, and no other", async () => {
  const { samples, text } = await scrape();
  const listed = [...PAGE.matchAll(/^\| `(latchkey_[a-z_]+)` \| ([^|]*)\|/gm)].map(
    ([, name = "", labels = ""]) =>
      [name, [...labels.matchAll(/`([a-z_]+)`/g)].map(([, label = ""]) => label)] as const,
  );
  const declared = [...text.matchAll(/^# TYPE (\S+) (counter|gauge|histogram)$/gm)].map(([, name]) => name);
  assert.deepEqual(new Set(declared), new Set(listed.map(([name]) => name)));
  assert.equal(declared.length, listed.length);
  assert.ok(declared.length >= 27);
  for (const { name, labels } of samples) {
    const of = name.replace(/_(bucket|sum|count)$/, "");
    const [, wanted = []] = listed.find(([each]) => each === of || each === name) ?? [];
    assert.deepEqual(
      Object.keys(labels)
        .filter((label) => label !== "le")
        .toSorted(),
      [...wanted].toSorted(),
      name,
    );
  }
});

test("paths and ids of callers make no labels, however many there are", async () => {
  const series = async (): Promise<readonly Sample[]> =>
    (await scrape()).samples.filter(({ name }) => name === "latchkey_http_request_duration_seconds_count");
  const routesOf = (samples: readonly Sample[]): number =>
    new Set(samples.map(({ labels }) => labels["route"])).size;
  const ask = async (at: number): Promise<void> => {
    const id = `${at}${CANARY}`;
    const paths = [
      `/api/v1/blueprint-runs/${id}/status`,
      `/api/v1/${id}`,
      `/${id}?q=${id}`,
      `/h/${id}`,
      `/dashboard/${id}`,
      `/operator/v1/runs/${id}`,
      `/api/v1/blueprints/${"x".repeat(at)}/schema`,
    ];
    for (const path of paths)
      await fetch(url + path, { method: at % 3 === 0 ? "POST" : "GET", headers: { "user-agent": id } }).then(
        (each) => each.text(),
      );
  };
  await ask(0);
  await ask(1);
  const before = await series();
  for (let at = 2; at < 60; at++) await ask(at);
  const now = await series();
  assert.equal(routesOf(now), routesOf(before));
  assert.equal(now.length, before.length, "the series are those of the first requests");
  for (const { labels } of now) {
    assert.match(labels["route"] ?? "", /^(none|\*|\/[a-zA-Z0-9/:*._-]*)$/);
    assert.match(labels["status"] ?? "", /^[2-5]\d\d$/);
  }
});

test("no secret, id or name is in the metrics or in a line of a request", async () => {
  const { text } = await scrape();
  const lines = bench.installation
    .logs()
    .split("\n")
    .filter((line) => line.includes('"msg":"request"'));
  assert.ok(lines.length > 100, "requests have lines");
  const { db } = bench.installation.database;
  const ids = await db.query<{ id: string }>(
    "select id from run union select id from credential union select id from account",
  );
  const shown = `${text}\n${lines.join("\n")}`;
  for (const value of [CANARY, bench.key, "canary-of-the-doctor-71", ...ids.map(({ id }) => id)])
    for (const [form, bytes] of formsOf(value))
      assert.equal(shown.includes(bytes.toString()), false, `${value.slice(0, 8)} as ${form}`);
  assert.doesNotMatch(text, /(run|cred|acct|key|sess|req)_[0-9A-Za-z]{20}/);
  const [line = "{}"] = lines.filter((each) => each.includes("/trigger"));
  const { level: _, time: __, ...fields } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual(Object.keys(fields), ["requestId", "method", "route", "status", "ms", "bytes", "msg"]);
});

test("a request that is answered has no line unless that is set", async () => {
  const lines = (): number => bench.installation.logs().split('"msg":"request"').length - 1;
  for (const setting of ["off", "errors"]) {
    const extra = { LATCHKEY_ACCESS_LOG: setting, LATCHKEY_METRICS_PORT: "0" };
    const service = await bench.installation.serve(extra, ["api"]);
    const before = lines();
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
    await service.end();
    assert.equal(lines(), before, setting);
  }
});

test("a database that answers slowly is not asked at each scrape", async () => {
  const { db } = bench.installation.database;
  const alarms = async (): Promise<number> => sum((await scrape()).samples, "latchkey_row_alarms");
  assert.equal(await alarms(), 0);
  const locked = Promise.withResolvers<void>();
  const locking = db.transaction(async (tx) => {
    await tx.query("lock table row_alarm in access exclusive mode");
    locked.resolve();
    // On a busy machine the scrape before was slow, too, and another one is asked only after a while.
    await until("a scrape waits for the lock", async () => {
      const rows = await tx.query(
        "select 1 from pg_locks where relation = 'row_alarm'::regclass and not granted",
      );
      return rows.length > 0;
    });
    await tx.query("select pg_sleep(0.5)");
    await tx.query(
      "insert into row_alarm (kind, id, fault) values ('account', 'acct_of_the_test', 'forged')",
    );
  });
  await locked.promise;
  await until("it was waited for", async () => (await alarms()) === 1);
  await locking;
  await db.query("delete from row_alarm where id = 'acct_of_the_test'");
  assert.equal(await alarms(), 1, "what it told before");
});

test("the metrics are on their own port only", async () => {
  const answer = await fetch(`${url}/metrics`);
  assert.equal(answer.status, 404);
  assert.equal((await fetch(metricsUrl.replace("/metrics", "/api/v1/blueprints"))).status, 404);
});

test("a run has its lines, which have no value of it", async () => {
  const { caller, installation } = bench;
  const credential = await connect(caller, "strat_it", { token: CANARY, code: "JBSWY3DPEHPK3PXP" });
  const form = new FormData();
  form.set("credential_id", credential);
  form.set("file", new Blob([`a,b\n${CANARY},2\n`], { type: "text/csv" }), `${CANARY}.csv`);
  const { body: run } = await caller.post("/blueprints/reads/trigger", form);
  assert.equal((await caller.waitForRun(run.id)).body.status, "completed");
  const { body: failing } = await caller.post("/blueprints/fails/trigger", {});
  assert.equal((await caller.waitForRun(failing.id)).body.status, "failed");
  const linesOf = (id: string): readonly Record<string, unknown>[] =>
    installation
      .logs()
      .split("\n")
      .filter((line) => line.includes(id) && line.includes('"runId"') && line.includes('"msg":"run '))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  await until("both are executed", () =>
    [run.id, failing.id].every((id) => linesOf(id).some(({ msg }) => msg === "run executed")),
  );
  const told = linesOf(run.id);
  const fieldsOf = (line: object): readonly string[] =>
    Object.keys(line).filter((key) => !["level", "time", "msg"].includes(key));
  assert.deepEqual(
    told.map((line) => [line["msg"], ...fieldsOf(line)]),
    [
      ["run taken", "runId", "accountId", "blueprintId", "version", "execution"],
      ["run logged in", "runId", "logins"],
      ["run completed", "runId"],
      ["run executed", "runId", "outcome", "ms"],
    ],
  );
  assert.deepEqual(
    linesOf(failing.id).map(({ msg }) => msg),
    ["run taken", "run failed", "run executed"],
  );
  for (const [form_, bytes] of formsOf(CANARY))
    assert.equal(JSON.stringify(told).includes(bytes.toString()), false, form_);
});

testInAll(
  "the format as this file's tests read it, and promtool for the rules",
  "a real Prometheus scrapes it, finds the numbers, and evaluates every rule",
  { skip: whyNoDebian() ?? false, timeout: 300_000 },
  async () => {
    await using prometheus = await startPrometheus(new URL(metricsUrl).port);
    await until("the target is up", async () => {
      const { health, lastError } = await prometheus.health();
      assert.equal(lastError, "");
      return health === "up";
    });
    const { samples } = await scrape();
    const [completed] = await prometheus.query("latchkey_runs_completed_total");
    assert.equal(completed?.value, sum(samples, "latchkey_runs_completed_total"));
    assert.equal(completed?.metric["job"], "latchkey");
    const types = new Set(samples.map(({ name }) => name));
    const known = await prometheus.query('count by (__name__) ({__name__=~"latchkey_.+"})');
    assert.deepEqual(new Set(known.map(({ metric }) => metric["__name__"])), types);
    await until("every rule is evaluated", async () => {
      const rules = await prometheus.rules();
      return rules.size >= 10 && [...rules.values()].every((health) => health === "ok");
    });
  },
);
