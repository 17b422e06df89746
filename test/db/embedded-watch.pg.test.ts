// Every process that uses the embedded PostgreSQL starts it again when it ends: the machine may kill it, or its disk may be full.
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "#db/embedded/start.ts";
import { watchServer } from "#db/embedded/watch.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import { eventually } from "../eventually.ts";
import { postmasterOf, runningPostmaster } from "../postmaster.ts";
import { exhaustLog, mountSmallDisk, whyNoSmallDisk } from "./full-disk.ts";
import { latchkeyProcess, newFolder, processesWith, ROOT, startLatchkey, urlOf } from "../cli/program.ts";

const root = mkdtempSync(join(tmpdir(), "latchkey-watch-"));
const servers: EmbeddedPostgres[] = [];
after(async () => {
  for (const server of servers) await server.stop();
  rmSync(root, { recursive: true, force: true });
});

async function start(dataDir: string, notices: string[]): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    dataDir,
    watch: {
      notice: (message) => notices.push(message),
      onGivenUp: (error) => notices.push(`given up: ${error.message}`),
      giveUpAfterMs: 120_000,
    },
  });
  servers.push(server);
  return server;
}

async function answers(db: Database): Promise<true | undefined> {
  return await db.query("select 1").then(
    () => true as const,
    () => undefined,
  );
}

test("a killed server is started again, once for all processes that use it, with what was committed", async () => {
  const dataDir = join(root, "killed");
  const [one, other]: [string[], string[]] = [[], []];
  const server = await start(dataDir, one);
  await start(dataDir, other);
  const db = openPool(server.ownerConnection, { applicationName: "watch-test" });
  await db.query("create table kept as select 1 as n");
  const { pid } = postmasterOf(dataDir);
  process.kill(pid, "SIGKILL");
  // Its last connections may live a moment longer than it does.
  const isAnother = (): boolean => (runningPostmaster(dataDir)?.pid ?? pid) !== pid;
  await eventually("it answers again", async () => (isAnother() ? await answers(db) : undefined), 60_000);
  assert.deepEqual(await db.query("select n from kept"), [{ n: 1 }]);
  await eventually("both know", async () =>
    servers.every((each) => each.goneForMs() === 0) &&
    [one, other].some((notices) => notices.some((notice) => /runs again, after/.test(notice)))
      ? true
      : undefined,
  );
  assert.match(
    [...one, ...other].join("\n"),
    /is gone \(killed, or out of disk space\?\): it is started again/,
  );
  await db.end();
});

test("a server that ended on a full disk is back when there is room", { skip: whyNoSmallDisk }, async () => {
  const dataDir = join(root, "full");
  using disk = mountSmallDisk(dataDir, 200);
  const notices: string[] = [];
  const server = await start(dataDir, notices);
  const db = openPool(server.ownerConnection, { applicationName: "watch-test" });
  await db.query("create table kept as select 1 as n");
  disk.fill();
  // It can't begin a new segment of its log: it ends, and can't come up.
  await exhaustLog(db);
  await db.query("insert into kept values (2)").catch(() => {});
  await eventually(
    "a start failed",
    async () => notices.some((each) => /disk is full/.test(each)) || undefined,
    60_000,
  );
  disk.makeRoom();
  await eventually("it answers again", async () => await answers(db), 60_000);
  assert.equal((await db.query<{ n: number }>("select n from kept"))[0]?.n, 1);
  await db.end();
  await servers.pop()?.stop();
});

test("a service whose database can't be started again answers its health check with 503, until it can", async () => {
  const parent = newFolder();
  const data = join(parent, "data");
  const fast = pathToFileURL(join(ROOT, "test/flow/fast-liveness.mjs")).href;
  const environment = {
    LATCHKEY_DATA_DIR: data,
    LATCHKEY_PORT: "0",
    HOME: parent,
    NODE_OPTIONS: `--import=${fast}`,
  };
  assert.equal((await latchkeyProcess(["init"], environment)).code, 0);
  const service = startLatchkey(["serve"], environment);
  try {
    const url = await urlOf(service);
    const health = async (): Promise<number> => (await fetch(`${url}/healthz`)).status;
    const becomes = async (status: number): Promise<void> => {
      await eventually(`healthz is ${status}`, async () => (await health()) === status || undefined, 60_000);
    };
    assert.equal(await health(), 200);
    // The server does not start without it.
    const [version, aside] = [join(data, "postgres/PG_VERSION"), join(data, "PG_VERSION")];
    const { pid } = postmasterOf(data);
    renameSync(version, aside);
    process.kill(pid, "SIGKILL");
    await becomes(503);
    renameSync(aside, version);
    await becomes(200);
    await eventually(
      "it is ready",
      async () => (await fetch(`${url}/readyz`)).status === 200 || undefined,
      60_000,
    );
  } finally {
    service.child.kill("SIGTERM");
    await service.ended;
    for (const left of processesWith(parent)) process.kill(left, "SIGKILL");
    rmSync(parent, { recursive: true, force: true });
  }
});

test("what can't be started is given up after its time, and said", async () => {
  const given = Promise.withResolvers<Error>();
  const watch = watchServer(
    () => false,
    async () => {
      throw new Error("the disk is full");
    },
    { notice: () => {}, onGivenUp: given.resolve, giveUpAfterMs: 500 },
  );
  assert.equal((await given.promise).message, "the disk is full");
  assert.ok(watch.goneForMs() > 500);
  await watch.stop();
});
