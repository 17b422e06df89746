// docs/blueprints.md#concurrency: how many runs of a Blueprint are executed at once, in all or of those with the same key.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { admitRuns } from "#db/runs/admission.ts";
import { insertWorker } from "#db/runs/workers.ts";
import { must } from "#lib/assert.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { install, type Installation } from "../service.ts";

const NODES = `nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;
const METADATA = "metadata: [{ name: tenant }]";
const WORKERS = ["wrk_one", "wrk_two", "wrk_three"];

let installation: Installation & AsyncDisposable;
let caller: Caller;
let accountId: string;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nconcurrency: 1000",
    "strategy: strat_one\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    `blueprint: free\naccount: acme\n${NODES}`,
    `blueprint: three\naccount: acme\nconcurrency: { limit: 3 }\n${NODES}`,
    `blueprint: by-tenant\naccount: acme\n${METADATA}\nconcurrency: { limit: 2, key: $metadata.tenant }\n${NODES}`,
    `blueprint: by-both\naccount: acme\n${METADATA}\ncredentials: { it: { strategy: strat_one } }
concurrency: { limit: 1, key: [$credentials.it, $metadata.\`tenant\`] }\n${NODES}`,
  );
  const api = await installation.serve({}, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
  const { db } = installation.database;
  const [account] = await db.query<{ id: string }>("select id from account where slug = 'acme'");
  accountId = must(account, "the account").id;
  for (const [at, id] of WORKERS.entries())
    await insertWorker(db, { id, lockKey: at + 1, hostname: "h", pid: 1 });
});
after(async () => await installation?.[Symbol.asyncDispose]());

async function trigger(key: string, body: object = {}): Promise<string> {
  const answer = await caller.post(`/blueprints/${key}/trigger`, body);
  assert.equal(answer.status, 202, answer.text);
  return answer.body.id;
}

/** All workers ask for runs at the same time, until none gets one. Returns how many were admitted. */
async function admit(): Promise<number> {
  let total = 0;
  for (;;) {
    const rounds = await Promise.all(
      WORKERS.map(async (owner) => {
        try {
          return (await admitRuns(installation.database.db, accountId, owner, 4)).runs.length;
        } catch (error) {
          // Another one has the account's row: its worker looks again.
          if ((error as { code?: string }).code === "55P03") return -1;
          throw error;
        }
      }),
    );
    total += rounds.reduce((sum, count) => sum + Math.max(count, 0), 0);
    if (rounds.every((count) => count === 0)) return total;
  }
}

/** The runs of each group that are being executed: `blueprint tenant` and how many. */
async function running(): Promise<Readonly<Record<string, number>>> {
  const rows = await installation.database.db.query<{ name: string; count: number }>(
    `select blueprint.key || coalesce(' ' || (convert_from(metadata, 'UTF8')::json ->> 'tenant'), '') as name, count(*)::int as count
     from run join blueprint on blueprint.id = run.blueprint_id where admitted_at is not null and ended_at is null group by 1`,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

async function end(limit: number): Promise<void> {
  await installation.database.db.query(
    `update run set status = 'failed', progress_step = 'failed', error_kind = 'internal', lease_owner = null, ended_at = greatest(app_now(), created_at)
     where id in (select id from run where admitted_at is not null and ended_at is null order by id limit $1)`,
    [limit],
  );
}

async function endAll(): Promise<void> {
  await installation.database.db.query(
    `update run set status = 'failed', progress_step = 'failed', error_kind = 'internal', lease_owner = null, ended_at = greatest(app_now(), created_at)
     where ended_at is null`,
  );
}

test("the limit holds with several workers until every run has had its turn, and holds up nobody else's", async () => {
  for (let n = 0; n < 8; n++) await trigger("three");
  const tenants = ["a", "a", "a", "b", "b", "b", "b", "c"];
  for (const tenant of tenants) await trigger("by-tenant", { tenant });
  for (let n = 0; n < 5; n++) await trigger("by-tenant");
  const free = await Promise.all(Array.from({ length: 6 }, async () => await trigger("free")));
  await admit();
  assert.deepEqual(await running(), {
    three: 3,
    free: 6,
    "by-tenant": 2,
    "by-tenant a": 2,
    "by-tenant b": 2,
    "by-tenant c": 1,
  });
  let begun = 16;
  for (let round = 0; round < 40 && begun < 8 + 8 + 5 + free.length; round++) {
    await end(2);
    begun += await admit();
    const now = await running();
    assert.ok((now["three"] ?? 0) <= 3, JSON.stringify(now));
    for (const name of ["", " a", " b", " c"])
      assert.ok((now[`by-tenant${name}`] ?? 0) <= 2, JSON.stringify(now));
  }
  assert.equal(begun, 8 + 8 + 5 + free.length, "each has begun");
  await endAll();
});

test("a key of several values counts the runs that have all of them in common", async () => {
  const [one, other] = [
    await connect(caller, "strat_one", { token: "t" }),
    await connect(caller, "strat_one", { token: "u" }),
  ];
  for (const credential_id of [one, other])
    for (const tenant of ["a", "a", "b"]) await trigger("by-both", { credential_id, tenant });
  await admit();
  assert.deepEqual(await running(), { "by-both a": 2, "by-both b": 2 });
  await endAll();
});

test("a run that waits says why, in `runs show` and where runs are counted, and a changed limit counts at once", async () => {
  await trigger("three");
  const waiting = [];
  for (let n = 0; n < 4; n++) waiting.push(await trigger("three"));
  await admit();
  const last = must(waiting.at(-1), "a run");
  const shown = await runCommand(installation, 0, ["runs", "show", last]);
  assert.match(
    shown.stdout,
    /^waits for +other runs of its Blueprint, of which at most 3 are executed at once$/m,
  );
  const { blueprint_wait: wait, waits_for: credential } = JSON.parse(
    (await runCommand(installation, 0, ["runs", "show", last, "--json"])).stdout,
  );
  assert.deepEqual([wait, credential], [{ limit: 3, has_key: false }, null]);
  const { countWaitingRuns } = await import("#db/operators/operator-system.ts");
  const counted = await countWaitingRuns(installation.database.db);
  assert.equal(counted.find(({ reason }) => reason === "blueprint")?.runs, 2);
  await installation.apply(`blueprint: three\naccount: acme\nconcurrency: { limit: 4 }\n${NODES}`);
  await admit();
  assert.deepEqual(await running(), { three: 4 });
  await installation.apply(`blueprint: three\naccount: acme\n${NODES}`);
  await admit();
  assert.deepEqual(await running(), { three: 5 });
  await endAll();
});

test("what the document can't mean is refused at its place", async () => {
  const refused = async (concurrency: string, expected: RegExp): Promise<void> => {
    await assert.rejects(
      installation.apply(`blueprint: x\naccount: acme\n${METADATA}\nconcurrency: ${concurrency}\n${NODES}`),
      (error: Error) => expected.test(error.message),
    );
  };
  await refused("3", /concurrency/);
  await refused("{ limit: 0 }", /concurrency\.limit/);
  await refused("{ key: $metadata.tenant }", /concurrency.*limit/);
  await refused("{ limit: 2, key: $inputs.given }", /concurrency\.key must be `\$metadata\.` or/);
  await refused(
    "{ limit: 2, key: $metadata.tennant }",
    /concurrency\.key .*no metadata item `tennant`.*`tenant`/,
  );
  await refused(
    "{ limit: 2, key: [$credentials.it] }",
    /concurrency\.key\[0\] .*no credential slot `it`; add it/,
  );
});
