// Design, page 6, F28: "fair per account (no tenant starves > 2x its share)".
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller } from "../caller.ts";
import { install, type Installation } from "../service.ts";

const PLACES = 4;
const MANY = 120;
const FEW = 15;

let installation: Installation & AsyncDisposable;
before(async () => {
  installation = await install({ LATCHKEY_WORKER_CONCURRENCY: String(PLACES) });
  for (const account of ["early", "late"]) {
    await installation.apply(
      `account: ${account}\nconcurrency: 1000`,
      `blueprint: any
account: ${account}
nodes:
  - { id: a, type: input, refKey: a, default: "[]" }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
    );
  }
});
after(async () => await installation?.[Symbol.asyncDispose]());

test("an account that triggers little and late is not behind another's backlog", async () => {
  const { db } = installation.database;
  const api = await installation.serve({}, "--roles", "api");
  for (const [account, count] of [
    ["early", MANY],
    ["late", FEW],
  ] as const) {
    const caller = openCaller(api.url, await installation.createKey(account));
    const answers = await Promise.all(
      Array.from({ length: count }, async () => await caller.post("/blueprints/any/trigger", {})),
    );
    assert.ok(answers.every(({ status }) => status === 202));
  }
  const [none] = await db.query("select count(*)::int as count from run where admitted_at is not null");
  assert.deepEqual(none, { count: 0 }, "nothing is admitted before a worker has room for it");
  const worker = await installation.serve({}, "--roles", "worker");
  for (;;) {
    const open = await db.query("select 1 from run where ended_at is null limit 1");
    if (open.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const [before] = await db.query<{ early: number; completed: number }>(
    `with last as (select max(started_at) as at from run join account on account.id = account_id where slug = 'late')
     select (count(*) filter (where slug = 'early' and started_at <= last.at))::int as early,
       (count(*) filter (where status = 'completed'))::int as completed
     from run join account on account.id = account_id, last`,
  );
  assert.equal(before?.completed, MANY + FEW);
  // Its share is one for one; milliseconds and what was under way when it came blur the edge.
  assert.ok(before.early <= 2 * FEW + 2 * PLACES, `${before.early} of the other's had begun`);
  await Promise.all([api.end(), worker.end()]);
});
