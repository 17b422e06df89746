// Accounts, the audit log, the state of the installation, and what dashboards are told while they watch.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { sendRunChanges } from "#db/runs/run-notifier.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";
import { until } from "../eventually.ts";
import { checkExport } from "../audit/offline.ts";
import { openCaller, type Caller } from "../caller.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

const BLUEPRINTS = ["plain", "asks"].map(
  (key) => `blueprint: ${key}
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
${key === "asks" ? "  - { id: look, type: review, from: list, title: Look at it }\n" : ""}  - { id: out, type: output, refKey: out, from: ${key === "asks" ? "look" : "list"} }
`,
);

let stage: OperatorStage;
let admin: Someone;
let browser: Browser;
let caller: Caller;

before(async () => {
  stage = await openOperatorStage({ LATCHKEY_BROWSER_NETWORK: "own" });
  await stage.installation.apply("account: acme\nallowed_origins: [https://app.example.com]", ...BLUEPRINTS);
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
});

after(async () => await stage?.[Symbol.asyncDispose]());

const good = async (id: string, path: string, body?: unknown): Promise<OperatorAnswer> =>
  await goodAnswer(browser, id, path, body);

/** What was decided before has let the run go on, to its review. */
async function untilParked(run: string | undefined): Promise<void> {
  await until(
    "it is parked",
    async () =>
      (await stage.db.query("select 1 from run where id = $1 and parked_at is not null", [run])).length === 1,
  );
}

const trigger = async (blueprint: string): Promise<string> =>
  (await caller.post(`/blueprints/${blueprint}/trigger`, { data: '[{"n":1}]' })).body.id;

test("an account is read and changed; what is left out stays, and a mistake changes nothing", async () => {
  const { body: list } = await good("listAccounts", "/accounts");
  assert.deepEqual(
    list.items.map(({ account }: any) => account),
    ["acme"],
  );
  const wrong = await browser.send("POST", "/accounts/acme", {
    allowed_origins: ["https://app.example.com/path"],
  });
  assert.deepEqual([wrong.status, wrong.body.error.details[0].field], [422, "allowed_origins[0]"]);
  await good("changeAccount", "/accounts/acme", {
    name: "Acme Inc.",
    concurrency: 7,
    rate_limit: null,
    branding: { accent_color: "#3355ff", support_url: "https://help.example.com" },
  });
  await good("changeAccount", "/accounts/acme", { branding: { support_url: null } });
  const { body } = await good("readAccount", "/accounts/acme");
  assert.deepEqual(
    [body.name, body.concurrency, body.rate_limit, body.allowed_origins],
    ["Acme Inc.", 7, null, ["https://app.example.com"]],
  );
  assert.deepEqual([body.branding.accent_color, body.branding.support_url], ["#3355ff", null]);
  assert.equal((await browser.send("POST", "/accounts/acme", { account: "other" })).status, 422);
  assert.equal((await browser.send("POST", "/accounts/nobody", {})).status, 404);
});

test("the audit log is found by what, who, whom and when; checked part by part, and exported whole", async () => {
  const queries: Readonly<Record<string, number>> = {
    "action=config.apply&limit=200": 5,
    "subject=acme&account=acme": 3,
    [`operator=${encodeURIComponent(admin.email)}&action=config.apply`]: 2,
    "until=2020-01-01": 0,
    "since=2100-01-01": 0,
    "action=run.purge": 0,
  };
  for (const [query, found] of Object.entries(queries))
    assert.equal((await good("listAudit", `/audit?${query}`)).body.items.length, found, query);
  const [entry] = (await good("listAudit", "/audit?action=config.apply")).body.items;
  assert.deepEqual(
    [entry.operator, entry.account, entry.subject_id, entry.detail.change],
    [admin.email, "acme", "acme", "update"],
  );
  assert.equal((await browser.send("GET", "/audit?operator=nobody@example.com")).status, 422);
  // A worker gives entries their places within a second.
  await until(
    "every entry has its number",
    async () => (await stage.db.query("select 1 from audit_entry where sequence is null")).length === 0,
  );
  const { body: chains } = await good("listAuditChains", "/audit/chains");
  assert.deepEqual(
    chains.items.map(({ account, exported_before: before }: any) => [account, before]),
    [
      [null, null],
      ["acme", null],
    ],
  );
  for (const { chain } of chains.items) {
    const { body } = await good("verifyAuditChain", `/audit/chains/${chain}/verify`);
    assert.deepEqual([body.findings, body.next], [[], null]);
    assert.ok(body.checked > 0);
  }
  const wrong = await browser.send("GET", `/audit/chains/${chains.items[0].chain}/verify?after=1`);
  assert.deepEqual([wrong.status, wrong.body.error.details[0].field], [422, "after"]);
  assert.equal((await browser.send("GET", "/audit/chains/acct_none/verify")).status, 404);
  const exported = await good("exportAudit", "/audit/export");
  const lines = exported.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(checkExport(lines, stage.signing.audit.publicKey), []);
  assert.equal(exported.headers["content-type"], "application/x-ndjson; charset=utf-8");
  const later = await good("exportAudit", "/audit/export?account=acme&since=2100-01-01T00:00:00%2B02:00");
  assert.equal(later.text.trimEnd().split("\n").length, 1, "the line about the chain");
  assert.equal((await browser.send("GET", "/audit/export?account=nobody")).status, 404);
});

test("the state of the installation, and the last hours in numbers", async () => {
  const runs = [await trigger("plain"), await trigger("asks")];
  assert.equal((await caller.waitForRun(runs[0] ?? "", 100_000)).body.status, "completed");
  await until(
    "a review is open",
    async () => (await stage.db.query("select 1 from review where status = 'open'")).length === 1,
  );
  const { body: system } = await good("readSystem", "/system");
  assert.deepEqual(
    system.workers.map((worker: any) => [worker.is_alive, worker.runs]),
    [[true, 0]],
  );
  const networks: unknown[] = [system.workers[0].browser_network];
  for (const saved of ["false", "null"]) {
    await stage.db.query(`update worker set own_browser_networks = ${saved}`);
    networks.push((await good("readSystem", "/system")).body.workers[0].browser_network);
  }
  assert.deepEqual(networks, ["own", "host", null]);
  assert.deepEqual(
    system.queue.map((each: any) => [each.waits_for, each.runs]),
    [["review", 1]],
  );
  assert.deepEqual([system.store, system.can_open_credentials], ["folder", true]);
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.deepEqual([system.version, LATCHKEY_VERSION], [version, version]);
  const { body: overview } = await good("readOverview", "/overview?hours=2");
  assert.equal(overview.hours.length, 3);
  const sums = (name: string): number =>
    overview.hours.reduce((sum: number, hour: any) => sum + hour[name], 0);
  assert.deepEqual([sums("completed"), sums("running"), sums("failed")], [1, 1, 0]);
  assert.equal(overview.durations.runs, 1);
  assert.ok(overview.durations.p50_ms > 0 && overview.durations.p50_ms === overview.durations.p99_ms);
  const others = { writes: 0, locked_credentials: 0, proposals: 0, dead_webhooks: 0 };
  assert.deepEqual(overview.needs_people, { reviews: 1, ...others });
});

test("an operator says whether a write happened, once, on record", async () => {
  const [waiting] = await stage.db.query<{ run: string; account: string }>(
    "select run_id as run, account_id as account from review where status = 'open'",
  );
  await stage.db.query(
    `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch, ended_at, detail)
     values ($1, $2, 'send', 3, 'in_doubt', 1, app_now(), 'no answer')`,
    [waiting?.account, waiting?.run],
  );
  const { body } = await good("listWrites", "/writes?account=acme");
  assert.deepEqual(
    body.items.map((each: any) => [each.run_id, each.node, each.record, each.run_ended]),
    [[waiting?.run, "send", 3, null]],
  );
  const path = `/runs/${waiting?.run}/writes/send`;
  assert.equal((await browser.send("POST", `${path}/4/decide`, { happened: true })).status, 404);
  await good("decideWrite", `${path}/3/decide`, { happened: true });
  assert.equal((await browser.send("POST", `${path}/3/decide`, { happened: false })).status, 404);
  const rows = await stage.db.query<{ by: string }>(
    "select actor_id as by from audit_entry where action = 'write.decide' and actor_kind = 'operator'",
  );
  assert.deepEqual(rows, [{ by: admin.id }]);

  await untilParked(waiting?.run);
  // What one node has left open is one line, and one decision.
  await stage.db.query(
    `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch, ended_at, detail)
     select $1, $2, 'other', ordinal, 'in_doubt', 1, app_now(), 'odd answer' from generate_series(0, 1) as ordinal`,
    [waiting?.account, waiting?.run],
  );
  const { body: groups } = await good("listWriteGroups", "/write-groups?account=acme");
  assert.deepEqual(
    groups.items.map((each: any) => [each.node, each.writes, each.runs, each.detail]),
    [["other", 2, 1, "odd answer"]],
  );
  // The one that was decided waits for nobody.
  assert.equal((await good("readOverview", "/overview?hours=1")).body.needs_people.writes, 2);
  const group = { account: "acme", blueprint: groups.items[0].blueprint, happened: false };
  assert.equal((await browser.send("POST", "/write-groups/decide", { ...group, node: "send" })).status, 404);
  const { body: decided } = await good("decideWriteGroup", "/write-groups/decide", {
    ...group,
    node: "other",
  });
  assert.deepEqual(decided, { writes: 2, runs: 1, left: 0 });
  const ruledOut = await stage.db.query(
    "select 1 from run_write where node_id = 'other' and status = 'ruled_out'",
  );
  assert.equal(ruledOut.length, 2);
});

test("of writes that are decided together, one that fails keeps no other from it, and is told of", async () => {
  const [waiting] = await stage.db.query<{ run: string; account: string; blueprint: string }>(
    `select run_id as run, review.account_id as account, blueprint.key as blueprint
     from review join run on run.id = run_id join blueprint on blueprint.id = run.blueprint_id where review.status = 'open'`,
  );
  await stage.db.query(
    `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch, ended_at, detail, sent)
     select $1, $2, 'three', ordinal, 'in_doubt', 1, app_now(), 'odd answer', 'POST https://shop.example/orders' || chr(10) || ordinal
     from generate_series(0, 2) as ordinal`,
    [waiting?.account, waiting?.run],
  );
  await untilParked(waiting?.run);
  await stage.db.query(
    `create function refuse_one() returns trigger language plpgsql as $$ begin raise exception 'this one is refused'; end $$;
     create trigger refuse_one before update on run_write for each row when (old.node_id = 'three' and old.ordinal = 1)
       execute function refuse_one()`,
  );
  const group = { account: "acme", blueprint: waiting?.blueprint, node: "three" };
  const path = `/writes?account=acme&node=three&blueprint=${group.blueprint ?? ""}`;
  const left = async () => (await good("listWrites", path)).body.items;
  assert.deepEqual(
    (await left()).map((each: any) => [each.record, each.sent]),
    [0, 1, 2].map((ordinal) => [ordinal, `POST https://shop.example/orders\n${ordinal}`]),
  );
  const viewer = await stage.holding(await stage.operator("viewer"));
  for (const each of [path, "/write-groups?account=acme"]) {
    const { body } = await viewer.send("GET", each);
    assert.deepEqual(
      new Set(body.items.map((each: any) => each.sent)),
      new Set([null]),
      "records are not for viewers",
    );
  }
  const decide = async () =>
    (await good("decideWriteGroup", "/write-groups/decide", { ...group, happened: true })).body;
  assert.deepEqual(await decide(), { writes: 2, runs: 1, left: 1 });
  assert.deepEqual(
    (await left()).map((each: any) => each.record),
    [1],
  );
  await stage.db.query("drop trigger refuse_one on run_write");
  assert.deepEqual(await decide(), { writes: 1, runs: 1, left: 0 });
});

/** A stream as a browser reads it; `next` waits for an event of which this is so. */
async function openStream(cookie: string) {
  const events: { readonly type: string; readonly data: any }[] = [];
  const sent = request(`${stage.service.url}/operator/v1/events`, {
    agent: false,
    headers: { Cookie: cookie },
  });
  sent.end();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve);
    sent.once("error", reject);
  });
  const ended = new Promise<void>((resolve) => response.once("close", resolve));
  let text = "";
  response.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, type, data] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      if (type !== undefined) events.push({ type, data: JSON.parse(data ?? "") });
      text = text.slice(end + 2);
    }
  });
  response.on("error", () => undefined);
  return {
    response,
    ended,
    events,
    has: async (isIt: (event: (typeof events)[number]) => boolean) =>
      await until("the event has come", () => events.some(isIt)),
    close: () => response.destroy(),
  };
}

test("a dashboard is told of new runs, of their states and of reviews, also of another process, until its session ends", async () => {
  const other = await stage.installation.serve();
  const elsewhere = openCaller(other.url, await stage.installation.createKey("acme"));
  const viewer = await stage.operator("viewer");
  const { cookie } = await stage.holding(viewer);
  const stream = await openStream(cookie);
  assert.equal(stream.response.headers["content-type"], "text/event-stream; charset=utf-8");
  const { body } = await elsewhere.post("/blueprints/asks/trigger", { data: "[]" });
  await stream.has(({ data }) =>
    data.reviews?.some((each: any) => each.run_id === body.id && each.status === "open"),
  );
  await stream.has(({ data }) =>
    data.runs?.some((run: any) => run.id === body.id && run.progress_step === "awaiting_review"),
  );
  await stage.db.query("update operator set disabled_at = app_now() where id = $1", [viewer.id]);
  await stream.ended;
});

test("more than can be told is told as `stale`: very many changes at once, and very many new runs", async () => {
  const { cookie } = await stage.holding(await stage.operator("viewer"));
  const stream = await openStream(cookie);
  const news = async (kind: "changed" | "waiting", ids: readonly string[]): Promise<void> =>
    await sendRunChanges(stage.db, "another_process", { [kind]: ids });
  // Told until it is heard: a stream knows from when on runs are new a moment after it has begun.
  const { body: known } = await caller.post("/blueprints/plain/trigger", { data: "[]" });
  await stream.has(
    ({ type, data }) => type === "changes" && data.runs.some(({ id }: any) => id === known.id),
  );
  await caller.waitForRun(known.id, 100_000);
  const staleCount = (): number => stream.events.filter(({ type }) => type === "stale").length;

  const before = staleCount();
  // Of one COMMIT: the first are read at once, and what comes meanwhile is read together.
  await news(
    "changed",
    Array.from({ length: 1_000 }, (_, index) => `run_of_many_${index}`),
  );
  await until("pages are told to look again", () => staleCount() > before);

  const beforeNew = staleCount();
  await stage.db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, name, metadata, ignored_keys, status,
       progress_step, created_at, started_at, ended_at, timeout_ms, retention_ms, error_kind)
     select 'run_many' || lpad(n::text, 20, '0'), gen_random_uuid(), account_id, blueprint_id, blueprint_version, api_key_id, name,
       metadata, ignored_keys, 'cancelled', 'cancelled', app_now(), app_now(), app_now(), 1, 1, null
     from run, generate_series(1, 250) n where id = $1`,
    [known.id],
  );
  await news("waiting", ["acct_of_another_process"]);
  await until("pages are told of the run", () => staleCount() > beforeNew);
  // And it goes on with what is told one by one.
  const { body: last } = await caller.post("/blueprints/plain/trigger", { data: "[]" });
  await stream.has(({ type, data }) => type === "changes" && data.runs.some(({ id }: any) => id === last.id));
  stream.close();
});

test("streams are bounded for a session", async () => {
  const viewer = await stage.holding(await stage.operator("viewer"));
  const streams = [];
  for (let index = 0; index < 20; index++) streams.push(await openStream(viewer.cookie));
  const refused = await viewer.send("GET", "/events");
  assert.deepEqual([refused.status, refused.headers["retry-after"]], [429, "5"]);
  for (const stream of streams) stream.close();
  await until("a stream is free", async () => (await viewer.send("GET", "/events")).status === 200);
});
