import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { openCaller } from "../caller.ts";
import { install } from "../service.ts";

test("a run that can't be ended for a while: no word of the database's is kept, and its job doesn't wait for hours", async () => {
  await using installation = await install();
  const { db } = installation.database;
  // As if the server quoted a value: nobody knows what a message holds.
  await db.query(`create function quote_it() returns trigger language plpgsql as
    $$ begin raise exception 'Failing row contains %', 'canary' || '-' || '4711' using errcode = '23514'; end $$`);
  await db.query(`create trigger refuse before update on run for each row when (new.status = 'failed')
    execute function quote_it()`);
  await installation.apply(
    "account: acme",
    `blueprint: fails
account: acme
hosts: [http://127.0.0.1:9]
nodes:
  - { id: read, type: http, retry: { attempts: 1 }, request: { url: "http://127.0.0.1:9/" }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
  );
  const key = await installation.createKey("acme");
  const service = await installation.serve();
  await openCaller(service.url, key).post("/blueprints/fails/trigger", {});
  const errors = async (): Promise<string> =>
    JSON.stringify(
      await db.query("select last_error from graphile_worker._private_jobs where last_error is not null"),
    );
  for (let count = 0; count < 300 && (await errors()) === "[]"; count++) await sleep(50);
  assert.match(await errors(), /the run could not be carried/);
  assert.match(installation.logs(), /"code":"23514".*a run could not be carried/);
  assert.doesNotMatch((await errors()) + installation.logs(), /canary-4711/);

  // As after many lost workers, each of which was an attempt: the next failure makes the job wait for exp(10) seconds.
  await db.query("update graphile_worker._private_jobs set attempts = 12 where last_error is not null");
  const isFarOff = async (): Promise<boolean> =>
    (await db.query("select from graphile_worker._private_jobs where run_at > now() + interval '1 hour'"))
      .length > 0;
  for (let count = 0; count < 600 && !(await isFarOff()); count++) await sleep(20);
  await db.query("drop trigger refuse on run");
  const ended = async (): Promise<boolean> =>
    (await db.query("select from run where status = 'failed'")).length > 0;
  for (let count = 0; count < 600 && !(await ended()); count++) await sleep(50);
  assert.ok(await ended(), "it has gone on");
});
