// docs/decisions/0002: the embedded PostgreSQL is killed, and ends on a full disk, while clients trigger runs that write. It is back by
// itself, nothing that was acknowledged is lost, and nothing is written twice.
//
// LATCHKEY_DATABASE_DEATHS=10 LATCHKEY_FULL_SECONDS=60 npm run test:all -- embedded-under-load     the full ones
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller } from "../caller.ts";
import {
  latchkeyProcess,
  newFolder,
  processesWith,
  startLatchkey,
  urlOf,
  type Environment,
} from "../cli/program.ts";
import { keepBooks, SENDS } from "../documents/books.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { startLoad, type Load } from "../flow/client-load.ts";
import { eventually } from "../eventually.ts";
import { postmasterOf } from "../postmaster.ts";
import { endOnFullLog, mountSmallDisk, whyNoSmallDisk } from "./full-disk.ts";

const DEATHS = Number(process.env["LATCHKEY_DATABASE_DEATHS"] ?? 1);
const FULL_MS = Number(process.env["LATCHKEY_FULL_SECONDS"] ?? 5) * 1_000;
/** By the clock only in the full ones. The promise is 10 s; a machine may be slower than that. */
const BACK_MS_MAX = "LATCHKEY_FULL_SECONDS" in process.env ? 10_000 : Infinity;
const BETWEEN_MS = 2_000;
const CLIENTS = 4;
const PATIENCE_MS = 120_000;
const DISK_MB = 700;

async function servesAgain(load: Load): Promise<number> {
  const since = performance.now();
  await eventually("it serves again", async () => load.servedAt > since || undefined, PATIENCE_MS);
  return Math.round(load.servedAt - since);
}

async function setUp(parent: string, environment: Environment, target: Target): Promise<string> {
  const run = async (...command: string[]): Promise<string> => {
    const { code, stdout, stderr } = await latchkeyProcess(command, environment);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await run("init");
  for (const [name, text] of Object.entries({ account: "account: acme\nrate_limit: off", sends: SENDS }))
    writeFileSync(join(parent, `${name}.yaml`), text.replaceAll("{TARGET}", target.url));
  await run("apply", "-f", join(parent, "account.yaml"), join(parent, "sends.yaml"));
  return await run("keys", "create", "--account", "acme");
}

test(
  `the embedded PostgreSQL killed ${DEATHS} times, and ${DEATHS} times without room, under load: nothing acknowledged is lost or doubled`,
  { skip: whyNoSmallDisk, timeout: 200_000 + DEATHS * (FULL_MS + 60_000) },
  async (context) => {
    await using target = await openTarget();
    const books = keepBooks(target);
    const parent = newFolder();
    const data = join(parent, "data");
    const disk = mountSmallDisk(data, DISK_MB);
    const environment = {
      LATCHKEY_DATA_DIR: data,
      LATCHKEY_PORT: "0",
      LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
      HOME: parent,
    };
    const key = await setUp(parent, environment, target);
    const service = startLatchkey(["serve"], environment);
    try {
      const caller = openCaller(await urlOf(service), key);
      await using load = startLoad(caller, "/blueprints/sends/trigger", { rows: [{}] }, CLIENTS, "deaths");
      const backMs: { readonly killed: number[]; readonly full: number[] } = { killed: [], full: [] };
      for (let death = 0; death < DEATHS; death++) {
        await sleep(BETWEEN_MS);
        process.kill(postmasterOf(data).pid, "SIGKILL");
        backMs.killed.push(await servesAgain(load));
        await sleep(BETWEEN_MS);
        disk.fill();
        await endOnFullLog(data);
        await sleep(FULL_MS);
        disk.makeRoom();
        backMs.full.push(await servesAgain(load));
      }
      await load.stop();
      context.diagnostic(
        JSON.stringify({ accepted: load.accepted.length, backMs, refusals: [...load.refusals] }),
      );
      assert.ok(Math.max(...backMs.killed, ...backMs.full) < BACK_MS_MAX);
      for (const run of load.accepted) {
        const { body } = await caller.waitForRun(run, PATIENCE_MS);
        assert.equal(body.status, "completed", `${run}: ${JSON.stringify(body)}`);
        assert.equal(books.get(run), 1, run);
      }
      assert.equal(service.child.exitCode, null);
    } finally {
      service.child.kill("SIGTERM");
      await service.ended;
      for (const left of processesWith(parent)) process.kill(left, "SIGKILL");
      disk[Symbol.dispose]();
      rmSync(parent, { recursive: true, force: true });
    }
  },
);
