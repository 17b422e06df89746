// docs/decisions/0030: what applying again means for runs; `retired`, labels, `retention`, `timeout`, and the account's `concurrency`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../eventually.ts";
import { blueprint, dataOf, openBench, type Bench, type EndedRun } from "./bench.ts";
import { openTarget } from "./target.ts";

let bench: Bench;

const bearer = (more = "", header = "one") =>
  `strategy: strat_token\naccount: acme\nhosts: ["{TARGET}"]\nfields: [{ key: token, type: password }]\nlogin: { type: headers, headers: { X-Token: "{{ $credential.token }}", X-Version: ${header} } }\n${more}`;
const versioned = (label: string, more = "") =>
  blueprint(
    "versioned",
    `- { id: read, type: http, credential: it, request: { url: /slow } }
- { id: rows, type: parse, from: read, format: json }
- { id: shown, type: map, from: rows, fields: { version: "'${label}'", of: of } }
- { id: out, type: output, refKey: out, from: shown }`,
    `credentials: { it: { strategy: strat_token } }\n${more}`,
  );
const plain = (key: string, more: string, rest = "") =>
  blueprint(
    key,
    `- { id: read, type: http, request: { url: "{TARGET}/slow" }, records: $${rest} }\n- { id: out, type: output, refKey: out, from: read }`,
    `hosts: ["{TARGET}"]\n${more}`,
  );
const ACCOUNT = "account: acme\nname: Acme\nconcurrency: 1\nretention: 10d\nsession_lifetime: 2h";

before(async () => {
  bench = await openBench(
    [
      bearer(),
      versioned("first"),
      plain(
        "labelled",
        "name: Labelled\ndescription: Says what it does\nicon: invoice\nretention: 3d",
        ", name: Reads the list, retry: { attempts: 2 }",
      ),
      plain("unlabelled", ""),
      plain("hurried", "timeout: 300ms"),
    ],
    ACCOUNT,
  );
});
after(() => bench?.[Symbol.asyncDispose]());

test("a run keeps the version that it was triggered with, of the Blueprint and of the strategy; new runs take the new one", async () => {
  const id = await bench.connect("strat_token", { token: "tok-123456" });
  const seen = bench.target.seen("GET /slow").length;
  const gate = Promise.withResolvers<void>();
  bench.target.on("GET /slow", async ({ headers }) => {
    await gate.promise;
    return { json: [{ of: headers["x-version"] ?? null }] };
  });
  // The account runs one at a time: the first is under way, the second waits in the queue, when the documents change.
  const [first, second] = [
    await bench.trigger("versioned", { credential_id: id }),
    await bench.trigger("versioned", { credential_id: id }),
  ];
  await until("the target was asked", () => bench.target.seen("GET /slow").length > seen);
  await bench.apply(bearer("", "two"), versioned("second"));
  const third = bench.run("versioned", { credential_id: id });
  const { body: waiting } = await bench.caller.get(`/blueprint-runs/${second.body.id}/status`);
  assert.deepEqual([waiting.status, waiting.progress_step], ["queued", "queued"]);
  gate.resolve();
  assert.deepEqual(dataOf(await bench.ended(first.body.id)), [{ version: "first", of: "one" }]);
  assert.deepEqual(dataOf(await bench.ended(second.body.id)), [{ version: "first", of: "one" }]);
  assert.deepEqual(dataOf(await third), [{ version: "second", of: "two" }]);
  // The Blueprint is the same: its id stays.
  assert.equal((await third).status.blueprint_id, (await bench.ended(first.body.id)).status.blueprint_id);
});

test("a run of before sends nothing to where its strategy leads no more, though its credential was connected for it", async () => {
  await using other = await openTarget();
  const strategy = (hosts: string, tokens: string): string => `strategy: strat_moved
account: acme
hosts: [${hosts}]
fields: [{ key: user, type: text }, { key: word, type: password }]
login: { type: oauth2, grant: password, client_id: x, token_url: "${tokens}/token", username: user, password: word }`;
  for (const each of [bench.target, other]) {
    each.on("GET /items", { json: [{ n: 1 }] });
    each.on("POST /token", { json: { access_token: "a-token", token_type: "bearer", expires_in: 30 } });
  }
  await bench.apply(
    strategy(`"${other.url}", "{TARGET}"`, other.url),
    blueprint(
      "moved",
      "- { id: read, type: http, credential: it, request: { url: /items }, records: $ }\n- { id: out, type: output, refKey: out, from: read }",
      "credentials: { it: { strategy: strat_moved } }",
    ),
  );
  const id = await bench.connect("strat_moved", { user: "amelia", word: "correct-horse" });
  /** Triggered before the change, begun after it: the account runs one at a time. */
  const across = async (changed: string): Promise<EndedRun> => {
    const gate = Promise.withResolvers<void>();
    const seen = bench.target.seen("GET /slow").length;
    bench.target.on("GET /slow", async () => {
      await gate.promise;
      return { json: [] };
    });
    await bench.trigger("unlabelled");
    await until("the target was asked", () => bench.target.seen("GET /slow").length > seen);
    const { body } = await bench.trigger("moved", { credential_id: id });
    await bench.apply(changed);
    gate.resolve();
    return await bench.ended(body.id);
  };
  const tightened = await across(strategy('"{TARGET}"', other.url));
  assert.equal(tightened.status.status, "completed", tightened.detail ?? "");
  assert.deepEqual(
    other.all.map(({ path }) => path),
    ["/token"],
  );
  const moved = await across(strategy('"{TARGET}"', bench.target.url));
  assert.match(moved.detail ?? "", /the strategy does not name http:\S+ in the version that is in force/);
  assert.equal(other.all.length, 1);
});

test("account concurrency 1: runs of the account follow each other", async () => {
  bench.target.on("GET /slow", { json: [], delayMs: 100 });
  const before = bench.target.seen("GET /slow").length;
  const started = await Promise.all([1, 2, 3].map(() => bench.trigger("unlabelled")));
  for (const { body } of started) assert.equal((await bench.ended(body.id)).status.status, "completed");
  const seen = bench.target.seen("GET /slow").slice(before);
  assert.deepEqual(
    seen.map(({ underWay }) => underWay),
    [1, 1, 1],
  );
});

test("labels change nothing for callers; a Blueprint's retention counts, else the account's", async () => {
  const { db } = bench.installation.database;
  const retentionOf = async (key: string) => {
    const { id } = await bench.run(key);
    const rows = await db.query<{ ms: string }>("select retention_ms as ms from run where id = $1", [id]);
    return Number(rows[0]?.ms) / 86_400_000;
  };
  assert.deepEqual([await retentionOf("labelled"), await retentionOf("unlabelled")], [3, 10]);
});

test("session_lifetime is the life of a session", async () => {
  const { body } = await bench.caller.post("/credential-sessions", { strategy_id: "strat_token" });
  assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), 2 * 3_600_000);
});

test("a Blueprint's timeout ends its run, wherever it is", async () => {
  const gate = Promise.withResolvers<void>();
  bench.target.on("GET /slow", async () => {
    await gate.promise;
    return { json: [] };
  });
  // While its target does not answer.
  const run = await bench.run("hurried");
  gate.resolve();
  bench.target.on("GET /slow", { json: [] });
  assert.deepEqual(
    [run.status.status, run.kind, run.detail],
    ["failed", "timeout", "The run took longer than its Blueprint's timeout."],
  );
});

test("applying the same again changes nothing; applying less leaves the rest alone", async () => {
  const count = async () =>
    (
      await bench.installation.database.db.query<{ count: string }>(
        "select count(*) as count from blueprint_version",
      )
    )[0]?.count;
  const before = await count();
  await bench.apply(plain("unlabelled", ""));
  assert.equal(await count(), before);
  assert.equal((await bench.run("labelled")).status.status, "completed");
});

test("retired takes no new sessions and no new triggers, finishes what runs, and can be taken back", async () => {
  const id = await bench.connect("strat_token", { token: "tok-123456" });
  const gate = Promise.withResolvers<void>();
  bench.target.on("GET /slow", async () => {
    await gate.promise;
    return { json: [{ of: 1 }] };
  });
  const session = await bench.caller.post("/credential-sessions", { strategy_id: "strat_token" });
  const { body: running } = await bench.trigger("versioned", { credential_id: id });
  await bench.apply(bearer("retired: true"), versioned("third", "retired: true"));

  const refused = await bench.caller.post("/credential-sessions", { strategy_id: "strat_token" });
  assert.deepEqual([refused.status, refused.body.error.details[0].field], [422, "strategy_id"]);
  const unknown = await bench.trigger("nowhere", { credential_id: id });
  const retired = await bench.trigger("versioned", { credential_id: id });
  assert.deepEqual([retired.status, retired.text], [404, unknown.text]);
  gate.resolve();
  assert.equal((await bench.ended(running.id)).status.status, "completed");
  assert.equal((await bench.caller.get(`/credential-sessions/${session.body.id}`)).body.status, "pending");

  await bench.apply(bearer(), versioned("fourth"));
  assert.deepEqual(dataOf(await bench.run("versioned", { credential_id: id }))[0].version, "fourth");
});
