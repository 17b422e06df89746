import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { openCaller } from "../caller.ts";
import { install } from "../service.ts";

test("what the database says of a run that can't be ended reaches neither the log nor the job's row", async () => {
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
});
