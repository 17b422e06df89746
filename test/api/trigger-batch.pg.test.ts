// docs/api.md#many-triggers-in-one-request: each trigger of a batch is what it would be by itself.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { limits } from "#domain/limits.ts";
import { openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { assertRefused } from "./stage.ts";

const NODES = `nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;

let installation: Installation & AsyncDisposable;
let api: RunningService;
let caller: Caller;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme",
    "account: slow\nrate_limit: { per_second: 1, burst: 5 }",
    `blueprint: open\naccount: acme\nmetadata: [{ name: po, required: true }]\n${NODES}`,
    `blueprint: open\naccount: slow\n${NODES}`,
  );
  api = await installation.serve({}, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
});
after(async () => await installation?.[Symbol.asyncDispose]());
afterEach(async () => await assertInvariants(installation));

/** Triggers of another test that fail in the log. */
const POISONED = 1;

interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly retry_after_seconds: number | null;
  readonly body: any;
}

async function send(
  triggers: readonly unknown[],
  headers: Record<string, string> = {},
  by = caller,
): Promise<readonly Answer[]> {
  const answer = await by.post("/blueprints/open/trigger-batch", { triggers }, headers);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.body.answers.length, triggers.length);
  return answer.body.answers;
}

const single = async (body: object, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
  await caller.post("/blueprints/open/trigger", body, headers);

const countRuns = async (): Promise<number> =>
  (await installation.database.db.query("select from run")).length;

/** How many runs the work has begun. */
async function begun(work: () => Promise<unknown>): Promise<number> {
  const before = await countRuns();
  await work();
  return (await countRuns()) - before;
}

test("each trigger is answered as it would be by itself, and a bad one leaves the others alone", async () => {
  const { db } = installation.database;
  await db.query(
    `create function refuse_poison() returns trigger language plpgsql as
       $$ begin if new.name = 'poison' then raise 'refused for this test'; end if; return new; end $$;
     create trigger refuse_poison before insert on run for each row execute function refuse_poison()`,
  );
  const bodies: readonly object[] = [
    { po: "1" },
    {},
    { po: "2", credential_id: "cred_unknown" },
    { po: "3", run_name: "poison" },
    { po: "4", given: [1] },
  ];
  let answers: readonly Answer[] = [];
  const made = await begun(async () => {
    answers = await send(bodies.map((trigger) => ({ trigger })));
  });
  assert.equal(made, 2);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [202, 400, 422, 500, 202],
  );
  for (const [at, trigger] of bodies.entries()) {
    const alone = await single(trigger);
    assert.equal(answers[at]?.status, alone.status);
    assert.deepEqual(Object.keys(answers[at]?.body), Object.keys(alone.body));
    if (alone.status !== 202) assert.deepEqual(answers[at]?.body, alone.body);
  }
  await db.query("drop trigger refuse_poison on run; drop function refuse_poison");
  const rows = await db.query<{ metadata: string; content: string | null }>(
    `select convert_from(metadata, 'UTF8') as metadata, (select convert_from(content, 'UTF8') from run_input where run_id = id) as content
     from run where id = any($1) order by id`,
    [[answers[0]?.body.id, answers[4]?.body.id]],
  );
  assert.deepEqual(rows, [
    { metadata: '{"po":"1"}', content: null },
    { metadata: '{"po":"4"}', content: "[1]" },
  ]);
});

test("what is no trigger is refused in its place, by the name of its field", async () => {
  const wrong: readonly (readonly [item: unknown, field: string | null])[] = [
    [7, null],
    [{ trigger: [] }, "trigger"],
    [{ Trigger: {} }, "Trigger"],
    [{ idempotency_key: " " }, "idempotency_key"],
    [{ idempotency_key: 7 }, "idempotency_key"],
    [{ idempotency_key: "k".repeat(256) }, "idempotency_key"],
    [{ priority: 11 }, "priority"],
    [{ priority: "1" }, "priority"],
    [{ delay_seconds: -1 }, "delay_seconds"],
    [{ delay_seconds: 60, expires_in_seconds: 60 }, "expires_in_seconds"],
  ];
  const right = { trigger: { po: "7" } };
  let answers: readonly Answer[] = [];
  const made = await begun(async () => {
    answers = await send([...wrong.map(([item]) => item), right]);
  });
  assert.equal(made, 1);
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.error?.details[0].field]),
    [...wrong.map(([, field]) => [422, field]), [202, undefined]],
  );
});

test("a key replays in the same batch, in another one and by itself, and refuses another body", async () => {
  const trigger = { po: "1", given: [{ a: 1.0 }] };
  const keyed = { idempotency_key: "k1", trigger };
  const before = await countRuns();
  const [first, twin, other] = await send([keyed, keyed, { ...keyed, trigger: { po: "2" } }]);
  assert.deepEqual([first?.status, first?.replayed], [202, false]);
  assert.deepEqual([twin?.replayed, twin?.body], [true, first?.body]);
  assert.equal(other?.status, 409);
  assert.equal(other?.body.error.details[0].code, "idempotency_key_reuse");
  const [again] = await send([keyed]);
  assert.deepEqual([again?.replayed, again?.body], [true, first?.body]);
  const alone = await single(trigger, { "idempotency-key": "k1" });
  assert.deepEqual([alone.headers.get("idempotent-replay"), alone.body], ["true", first?.body]);
  assert.equal(await countRuns(), before + 1);
});

test("the request's key and queue options hold for the triggers that do not say otherwise", async () => {
  const triggers = [
    { trigger: { po: "1" } },
    { trigger: { po: "1" }, priority: 2 },
    { trigger: { po: "3" }, idempotency_key: "own", delay_seconds: 0 },
  ];
  const headers = { "idempotency-key": "batch-1", "latchkey-priority": "5", "latchkey-delay": "60" };
  const first = await send(triggers, headers);
  assert.equal(new Set(first.map(({ body }) => body.id)).size, 3);
  const again = await send(triggers, headers);
  assert.deepEqual(
    again.map(({ replayed, body }) => [replayed, body]),
    first.map(({ body }) => [true, body]),
  );
  // Its own key is not the batch's.
  assert.equal((await single({ po: "3" }, { "idempotency-key": "own" })).body.id, first[2]?.body.id);
  const rows = await installation.database.db.query(
    `select priority, not_before is not null as delayed from run where id = any($1) order by array_position($1, id)`,
    [first.map(({ body }) => body.id)],
  );
  assert.deepEqual(rows, [
    { priority: 5, delayed: true },
    { priority: 2, delayed: true },
    { priority: 5, delayed: false },
  ]);
  const post = async (more: Record<string, string>): Promise<ApiAnswer> =>
    await caller.post("/blueprints/open/trigger-batch", { triggers }, more);
  assertRefused(await post({ "idempotency-key": " " }), 422, "Idempotency-Key");
  assertRefused(await post({ "latchkey-priority": "11" }), 422, "Latchkey-Priority");
});

test("each trigger counts for the rate limit, and one above it is refused by itself", async () => {
  const limited = openCaller(api.url, await installation.createKey("slow"));
  let answers: readonly Answer[] = [];
  const made = await begun(async () => {
    answers = await send(
      Array.from({ length: 8 }, () => ({})),
      {},
      limited,
    );
  });
  const statuses = answers.map(({ status }) => status);
  const accepted = statuses.filter((status) => status === 202).length;
  // A token or two may have come back meanwhile.
  assert.ok(accepted >= 5 && accepted < 8, statuses.join());
  assert.deepEqual(
    statuses,
    statuses.toSorted((one, other) => one - other),
  );
  const refused = answers.at(-1);
  assert.deepEqual([refused?.status, refused?.body.error.type], [429, "rate_limit_exceeded"]);
  assert.ok((refused?.retry_after_seconds ?? 0) >= 1);
  assert.equal(made, accepted);
});

test("as many as may be are executed in a few transactions", async () => {
  const count = limits.triggerBatchMax;
  const triggers = Array.from({ length: count }, (_, at) => ({
    idempotency_key: `many-${at}`,
    trigger: { po: String(at) },
  }));
  const before = await countRuns();
  const answers = await send(triggers);
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, count);
  const [row] = await installation.database.db.query<{ transactions: number; keys: number }>(
    `with made as (select xmin::text as transaction from run where id = any($1))
     select count(distinct transaction)::int as transactions,
       (select count(*)::int from idempotency_key where xmin::text in (select transaction from made)) as keys from made`,
    [answers.map(({ body }) => body.id)],
  );
  assert.equal(row?.keys, count, "each key is claimed in its run's transaction");
  assert.ok((row?.transactions ?? count) < count / 10, `${row?.transactions} transactions`);
  const path = "/blueprints/open/trigger-batch";
  for (const wrong of [{ triggers: [...triggers, {}] }, { triggers: [] }, { triggers: {} }, {}])
    assertRefused(await caller.post(path, wrong), 422, "triggers");
  assertRefused(await caller.post(path, { triggers: [{}], trigger: {} }), 422, "trigger");
  assert.equal(await countRuns(), before + count);
});

test("while the database does not answer, what is left of a batch is not tried", async () => {
  const { db } = installation.database;
  const triggers = Array.from({ length: limits.triggerBatchChunk + 1 }, (_, at) => ({
    idempotency_key: `held-${at}`,
    trigger: { po: "1" },
  }));
  const before = await countRuns();
  const answers = await db.transaction(async (tx) => {
    await tx.query("lock table run in access exclusive mode");
    return await send(triggers);
  });
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [503], JSON.stringify(answers[0]));
  const failures = installation.logs().match(/"route":"[^"]*trigger-batch"[^\n]*"request failed"/g) ?? [];
  assert.equal(failures.length, limits.triggerBatchChunk + POISONED);
  assert.equal(await countRuns(), before);
});
