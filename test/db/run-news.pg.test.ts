// News of runs between processes: processes that listen hear them, and where nobody else does nobody is told.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openPool, openSession } from "#db/connection/pool.ts";
import { RunNotifier, sendRunChanges } from "#db/runs/run-notifier.ts";
import { openLog } from "#lib/log.ts";
import { eventually } from "../eventually.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

const PATIENCE_MS = 60_000;
const LOG = openLog({ level: "silent", format: "json" });

let database: TestDatabase;
/** All that is said on the channel. */
const said: string[] = [];
let closeWire = async (): Promise<void> => {};

before(async () => {
  database = await createTestDatabase();
  const { connectionString } = database;
  const wire = await openSession({ connectionString }, { applicationName: "wire", onLost: () => {} });
  const client = await wire.pool.connect();
  client.on("notification", ({ payload }) => said.push(payload ?? ""));
  client.release();
  await wire.query("listen latchkey_run");
  closeWire = async () => await wire.end();
});
after(async () => {
  await closeWire();
  await database?.drop();
});

/** As a process of its own has it. */
function openNews() {
  const source = { connectionString: database.connectionString };
  const db = openPool(source, { applicationName: "news-test", max: 2 });
  const news = new RunNotifier(db, source, LOG);
  const heard: string[] = [];
  let resumed = 0;
  const unsubscribe = news.subscribe({ changed: (ids) => heard.push(...ids), resumed: () => resumed++ });
  const close = async (): Promise<void> => {
    unsubscribe();
    await news.close();
    await db.end();
  };
  return { news, heard, resumed: () => resumed, [Symbol.asyncDispose]: close };
}

const isSaid = (word: string): boolean => said.some((payload) => payload.split(" ").includes(word));

let number = 0;
const changeNow = (news: RunNotifier): string => {
  const run = `run_${number++}`;
  news.announce([run]);
  return run;
};

/** Gives a change that had not been told to others when what was said after it came. */
async function untold(news: RunNotifier, listener: readonly string[]): Promise<string | undefined> {
  const run = changeNow(news);
  const isHeard = async () => (listener.includes(run) ? true : undefined);
  await eventually("its own listeners hear it", isHeard, PATIENCE_MS);
  await sleep(50);
  await sendRunChanges(database.db, "test", { stop: [`after_${run}`] });
  await eventually("the wire", async () => (isSaid(`after_${run}`) ? true : undefined), PATIENCE_MS);
  return isSaid(run) ? undefined : run;
}

test("a process tells nobody while it alone listens, and again as soon as another one does", async () => {
  await using one = openNews();
  await eventually("it listens", async () => (one.resumed() > 0 ? true : undefined), PATIENCE_MS);
  const quiet = await eventually(
    "it tells nobody",
    async () => await untold(one.news, one.heard),
    PATIENCE_MS,
  );

  await using other = openNews();
  await eventually("they have met", async () => (other.resumed() > 1 ? true : undefined), PATIENCE_MS);
  const last = changeNow(one.news);
  const isHeard = async () => (other.heard.includes(last) ? true : undefined);
  await eventually("the other hears it", isHeard, PATIENCE_MS);
  assert.ok(!isSaid(quiet), "not even late");
});

test("a process that does not listen tells whatever it has to tell", async () => {
  const source = { connectionString: database.connectionString };
  const news = new RunNotifier(database.db, source, LOG);
  news.announce(["run_of_a_silent_one"]);
  await eventually("the wire", async () => (isSaid("run_of_a_silent_one") ? true : undefined), PATIENCE_MS);
  await news.close();
});
