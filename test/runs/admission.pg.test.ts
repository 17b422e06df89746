// docs/decisions/0006: accounts that wait share fairly.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../eventually.ts";
import { connect, openCaller } from "../caller.ts";
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

async function untilAllEnded(): Promise<void> {
  await until(
    "every run has ended",
    async () =>
      (await installation.database.db.query("select 1 from run where ended_at is null limit 1")).length === 0,
  );
}

test("an account that triggers little and late is not behind another's backlog", async () => {
  const { db } = installation.database;
  const api = await installation.serve({}, ["api"]);
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
  const worker = await installation.serve({}, ["worker"]);
  await untilAllEnded();
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
  await untilAllEnded();
  const ended = await db.query(
    `select status, count(*)::int as count from run join account on account.id = account_id
     where slug = 'narrow' group by status`,
  );
  assert.deepEqual(ended, [{ status: "completed", count: 40 }]);
  assert.ok(most <= 3, `${most} at once`);
  await Promise.all(services.map(async (service) => await service.end()));
  target.close();
});

test("any number of runs behind a busy credential hold up nobody else's, and begin in their order", async () => {
  const BEHIND = 240;
  const { db } = installation.database;
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const target = createServer((request, response) => {
    seen.push(String(request.url));
    void gate.promise.then(() =>
      response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}'),
    );
  });
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  await installation.apply(
    "account: busy\nconcurrency: 1000",
    `strategy: strat_one
account: busy
hosts: ["${origin}"]
concurrency: 1
fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token }`,
    `blueprint: held
account: busy
credentials: { it: { strategy: strat_one } }
nodes:
  - { id: n, type: input, refKey: n, accepts: text }
  - { id: read, type: http, credential: it, request: { url: "/{{ $inputs.n }}" }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
    `blueprint: free
account: busy
nodes:
  - { id: a, type: input, refKey: a, default: "[]" }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  const service = await installation.serve();
  const caller = openCaller(service.url, await installation.createKey("busy"));
  const [one, other] = await Promise.all([
    connect(caller, "strat_one", { token: "token-1234" }),
    connect(caller, "strat_one", { token: "token-5678" }),
  ]);
  const trigger = async (blueprint: string, body: object): Promise<string> => {
    const { status, text, body: run } = await caller.post(`/blueprints/${blueprint}/trigger`, body);
    assert.equal(status, 202, text);
    return run.id;
  };
  const held: string[] = [];
  for (let n = 0; n < BEHIND; n++) held.push(await trigger("held", { credential_id: one, n: `one-${n}` }));

  // Younger ones that need nothing, and one of another credential.
  const free = await Promise.all(Array.from({ length: 5 }, async () => await trigger("free", {})));
  const last = await trigger("held", { credential_id: other, n: "other" });
  for (const id of free) assert.equal((await caller.waitForRun(id, 60_000)).body.status, "completed");
  while (seen.length < 2) await sleep(20);
  assert.deepEqual(seen.toSorted(), ["/one-0", "/other"]);
  const aside = await db.query("select 1 from run where waits_for = $1 and admitted_at is null", [one]);
  assert.equal(aside.length, BEHIND - 1);

  // One of them is cancelled meanwhile; the credential is free again and again.
  await caller.post(`/blueprint-runs/${held[1]}/cancel`, {});
  gate.resolve();
  assert.equal((await caller.waitForRun(last, 60_000)).body.status, "completed");
  assert.equal((await caller.waitForRun(held.at(-1) ?? "", 110_000)).body.status, "completed");
  const ofOne = seen.filter((path) => path.startsWith("/one-"));
  const expected = held.flatMap((_id, n) => (n === 1 ? [] : [`/one-${n}`]));
  assert.deepEqual(ofOne, expected);
  await service.end();
  target.close();
});
