// docs/accounts.md#throttle: the rate of requests to a host, over all Blueprints, runs and workers of an account.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { countWaitingRuns } from "#db/operators/operator-system.ts";
import { openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation } from "../service.ts";

const SPACING_MS = 20;

let installation: Installation & AsyncDisposable;
let target: Server;
let origin: string;
let caller: Caller;
let requests = 0;

const account = (throttle: string): string => `account: acme\nthrottle: [${throttle}]`;

before(async () => {
  target = createServer((_request, response) => {
    requests++;
    response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
  });
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  installation = await install();
  await installation.apply(
    account(`{ host: "${origin}", requests: 5, per: ${5 * SPACING_MS}ms }`),
    ...["one", "two"].map(
      (key) => `blueprint: ${key}
account: acme
hosts: ["${origin}"]
nodes:
  - { id: read, type: http, request: { url: "${origin}/" }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
    ),
  );
  const services = await Promise.all([installation.serve(), installation.serve()]);
  caller = openCaller(services[0].url, await installation.createKey("acme"));
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  target?.close();
});

const trigger = async (key: string): Promise<string> =>
  (await caller.post(`/blueprints/${key}/trigger`, {})).body.id;

const unfinished = async (): Promise<readonly { readonly id: string; readonly line: string | null }[]> =>
  await installation.database.db.query("select id, line from run where ended_at is null order by id");

test("requests of two Blueprints on two workers take turns at the host's rate", async () => {
  const { db } = installation.database;
  const [began] = await db.query<{ ms: number }>(
    "select (extract(epoch from app_now()) * 1000)::float8 as ms",
  );
  await Promise.all(
    ["one", "two"].flatMap((key) => Array.from({ length: 12 }, async () => await trigger(key))),
  );
  await until("every run has ended", async () => (await unfinished()).length === 0);
  assert.deepEqual(await db.query("select status, count(*)::int from run group by 1"), [
    { status: "completed", count: 24 },
  ]);
  assert.equal(requests, 24);
  const [slot] = await db.query<{ ms: number; host: string; spacing: number }>(
    `select (extract(epoch from next_at) * 1000)::float8 as ms, node_id as host, spacing_ms as spacing from throttle_slot`,
  );
  assert.deepEqual([slot?.host, slot?.spacing], [origin, SPACING_MS]);
  // One slot for each request, each at least its spacing after the one before.
  assert.ok((slot?.ms ?? 0) - (began?.ms ?? 0) >= 23 * SPACING_MS, JSON.stringify([slot, began]));
  await assertInvariants(installation);
});

test("a run that would wait for long queues, holds nothing and says why; without the throttle it goes on", async () => {
  const { db } = installation.database;
  await installation.apply(account(`{ host: "${origin}", requests: 1, per: 1h }`));
  // Later than any cached throttle.
  await until("the new rate counts", async () => {
    await trigger("one");
    await until("it has ended or queues", async () =>
      (await unfinished()).every(({ line }) => line !== null),
    );
    return (await unfinished()).length > 0;
  });
  const [waiting] = await unfinished();
  const id = waiting?.id ?? "";
  await until(
    "nothing calls it",
    async () =>
      (await db.query("select 1 from run where parked_at is null and ended_at is null")).length === 0,
  );
  const shown = await runCommand(installation, 0, ["runs", "show", id]);
  assert.match(
    shown.stdout,
    new RegExp(`^waits for +its turn under the account's \`throttle\` of ${origin}$`, "m"),
  );
  assert.equal((await countWaitingRuns(db)).find(({ reason }) => reason === "throttle")?.runs, 1);
  const [held] = await db.query(
    "select 1 from run where lease_owner is not null or admitted_at is not null and ended_at is null",
  );
  assert.equal(held, undefined);
  await installation.apply("account: acme");
  await db.query("delete from throttle_slot");
  await caller.post(`/blueprint-runs/${id}/cancel`);
});

test("what the document can't mean is refused at its place", async () => {
  const refused = async (throttle: string, expected: RegExp): Promise<void> => {
    await assert.rejects(installation.apply(account(throttle)), (error: Error) =>
      expected.test(error.message),
    );
  };
  await refused("{ host: erp, requests: 1, per: 1s }", /throttle\[0\]\.host/);
  await refused(`{ host: "${origin}", requests: 0, per: 1s }`, /throttle\[0\]\.requests/);
  await refused(
    `{ host: "${origin}", requests: 1, per: 2h }`,
    /throttle\[0\]\.per is a duration from 1ms to 1h/,
  );
  await refused(
    `{ host: "${origin}", requests: 1, per: 1s }, { host: "${origin}", requests: 2, per: 1s }`,
    /throttle\[1\]\.host is listed twice/,
  );
});
