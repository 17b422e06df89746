import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { install } from "../service.ts";

const PATIENCE_MS = 60_000;

test("a run that can't be ended for a while: no word of the database's is kept, and it is tried again, more and more seldom", async () => {
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
  const pauses: number[] = [];
  for (const epoch of [1, 2]) {
    const pauseMs = await eventually(
      `it was given back by claim ${epoch}`,
      async () => {
        const [row] = await db.query<{ pauseMs: number }>(
          `select (extract(epoch from not_before - app_now()) * 1000)::float8 as "pauseMs" from run
           where lease_owner is null and not_before > app_now() and lease_epoch = $1`,
          [epoch],
        );
        return row?.pauseMs;
      },
      PATIENCE_MS,
    );
    pauses.push(pauseMs);
  }
  assert.ok((pauses[0] ?? 0) <= 2_000 && (pauses[1] ?? 0) > 2_000, pauses.join());
  assert.match(installation.logs(), /"code":"23514".*a run could not be executed/);
  assert.doesNotMatch(installation.logs(), /canary-4711/);
  const jobs = await db.query(
    "select from graphile_worker.jobs where key is not null and task_identifier = 'execute_run'",
  );
  assert.equal(jobs.length, 0);

  await db.query("drop trigger refuse on run");
  const isEnded = async (): Promise<true | undefined> =>
    (await db.query("select from run where status = 'failed'")).length > 0 ? true : undefined;
  await eventually("it has gone on", isEnded, PATIENCE_MS);
});
