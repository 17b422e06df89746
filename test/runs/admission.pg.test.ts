// Design, page 6, F28: "fair per account (no tenant starves > 2x its share)".
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
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
    await sleep(50);
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

test("an account's concurrency holds though several workers take its runs at the same time", async () => {
  const { db } = installation.database;
  let open = 0;
  let most = 0;
  const target = createServer((_request, response) => {
    most = Math.max(most, ++open);
    setTimeout(() => {
      open--;
      response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
    }, 20);
  });
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  await installation.apply(
    "account: narrow\nconcurrency: 3",
    `blueprint: asks
account: narrow
hosts: ["${origin}"]
nodes:
  - { id: read, type: http, request: { url: "${origin}/" }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
  );
  const services = await Promise.all([installation.serve(), installation.serve()]);
  const key = await installation.createKey("narrow");
  await Promise.all(
    services.flatMap(({ url }) => {
      const caller = openCaller(url, key);
      return Array.from({ length: 20 }, async () => await caller.post("/blueprints/asks/trigger", {}));
    }),
  );
  for (;;) {
    const waiting = await db.query("select 1 from run where ended_at is null limit 1");
    if (waiting.length === 0) break;
    await sleep(50);
  }
  const ended = await db.query(
    `select status, count(*)::int as count from run join account on account.id = account_id
     where slug = 'narrow' group by status`,
  );
  assert.deepEqual(ended, [{ status: "completed", count: 40 }]);
  assert.ok(most <= 3, `${most} at once`);
  await Promise.all(services.map(async (service) => await service.end()));
  target.close();
});
