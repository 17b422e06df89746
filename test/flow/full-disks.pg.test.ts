// docs/operate.md#a-full-disk: "Nothing that was acknowledged is lost, and everything goes on by itself once there is room". Each place of an
// installation is a real disk of its own, which is full for a while under a load; the process says so, and says when it is over.
//
// LATCHKEY_FULL_SECONDS=60 npm run test:all -- full-disks     the full ones
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openCaller, type Caller } from "../caller.ts";
import {
  latchkeyProcess,
  newFolder,
  processesWith,
  startLatchkey,
  urlOf,
  type Environment,
} from "../cli/program.ts";
import { endOnFullLog, moveToSmallDisk, whyNoSmallDisk, type SmallDisk } from "../db/full-disk.ts";
import { blueprint } from "../documents/bench.ts";
import { keepBooks, SENDS } from "../documents/books.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { eventually } from "../eventually.ts";
import { freePort } from "../free-port.ts";
import { passwordLogin } from "../password-login.ts";
import { AWAY, startLoad, type Load } from "./client-load.ts";

const FULL_MS = Number(process.env["LATCHKEY_FULL_SECONDS"] ?? 5) * 1_000;
const PATIENCE_MS = 120_000;
const BETWEEN_MS = 2_000;

/** Folders of the data folder, the outer ones first; what `/readyz` calls them, and how large their disks are. */
const PLACES = [
  { folder: "", place: "data", megabytes: 500 },
  { folder: "objects", place: "objects", megabytes: 96 },
  { folder: "scratch", place: "scratch", megabytes: 64 },
  { folder: "postgres", place: "database", megabytes: 300 },
  { folder: "postgres/pg_wal", place: "log", megabytes: 200 },
] as const;
type Place = (typeof PLACES)[number]["place"];

const DOCUMENTS = [
  "account: acme\nrate_limit: off",
  `strategy: strat_portal\naccount: acme\nhosts: ['{TARGET}']\n${passwordLogin(200)}`,
  SENDS,
  // Two nodes read the lines, so they are kept in a temporary file; the input and the results are objects.
  blueprint(
    "copies",
    `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: one, type: output, refKey: one, from: lines }
- { id: other, type: output, refKey: other, from: lines }`,
  ),
];
const ROWS = Array.from({ length: 100 }, (_, n) => ({ n, text: "x".repeat(1_000) }));

async function setUp(parent: string, environment: Environment, target: Target): Promise<string> {
  const run = async (...command: string[]): Promise<string> => {
    const { code, stdout, stderr } = await latchkeyProcess(command, environment);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await run("init");
  const file = join(parent, "documents.yaml");
  writeFileSync(file, DOCUMENTS.join("\n---\n").replaceAll("{TARGET}", target.url));
  await run("apply", "-f", file);
  return await run("keys", "create", "--account", "acme");
}

/** Connects credentials and deletes them, each until it is acknowledged. */
function startDeletes(caller: Caller) {
  const [deleted, refusals] = [[] as string[], new Map<string, number>()];
  let isOver = false;
  const untilDone = async <T>(work: () => Promise<T | string>, isDone: (found: T | string) => found is T) => {
    for (;;) {
      const found = await work().catch((error: unknown) => String(error));
      if (isDone(found)) return found;
      refusals.set(String(found), (refusals.get(String(found)) ?? 0) + 1);
      await sleep(200);
    }
  };
  const done = (async (): Promise<void> => {
    while (!isOver) {
      const id = await untilDone<{ readonly id: string }>(
        async () => ({
          id: await connect(caller, "strat_portal", { username: "ada", password: "a-password" }),
        }),
        (found) => typeof found !== "string",
      );
      const acknowledge = async (): Promise<number | string> => {
        const { status } = await caller.delete(`/credentials/${id.id}`);
        // The answer to the first one was lost.
        return status === 204 || status === 404 ? status : `delete ${status}`;
      };
      const status = await untilDone<number>(acknowledge, (found) => typeof found === "number");
      if (status === 204) deleted.push(id.id);
      await sleep(100);
    }
  })();
  return {
    deleted,
    refusals,
    stop: async (): Promise<void> => {
      isOver = true;
      await done;
    },
  };
}

interface Says {
  /** What its readiness, its metrics and its log say of a place. */
  saysFull(place: Place): Promise<boolean>;
  saysRoom(): Promise<boolean>;
}

function ears(url: string, metricsPort: number, log: () => string): Says {
  const ready = async (): Promise<{ readonly status: number; readonly body: any }> => {
    const answer = await fetch(`${url}/readyz`);
    return { status: answer.status, body: await answer.json() };
  };
  return {
    saysFull: async (place) => {
      const { status, body } = await ready();
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      if (place === "log")
        return status === 503 && metrics.includes("latchkey_database_up 0") && /disk is full/i.test(log());
      return (
        body.disk_full?.includes(place) === true &&
        new RegExp(`latchkey_disk_full_total\\{place="${place}"\\} [1-9]`).test(metrics) &&
        log().includes(`"alarm":"disk_full","place":"${place}"`)
      );
    },
    saysRoom: async () => {
      const { status, body } = await ready();
      return status === 200 && body.disk_full === undefined;
    },
  };
}

async function served(loads: readonly Load[]): Promise<void> {
  const since = performance.now();
  const all = async (): Promise<true | undefined> =>
    loads.every(({ servedAt }) => servedAt > since) || undefined;
  await eventually("everything is accepted again", all, PATIENCE_MS);
}

test(
  `each disk of an installation is full for ${FULL_MS / 1_000} s under load: said, nothing acknowledged is lost, and all goes on by itself`,
  { skip: whyNoSmallDisk, timeout: 600_000 + PLACES.length * 3 * FULL_MS },
  async (context) => {
    await using target = await openTarget();
    target.on("POST /login", { text: "welcome" });
    const books = keepBooks(target);
    const parent = newFolder();
    const data = join(parent, "data");
    const metricsPort = await freePort();
    const environment = {
      LATCHKEY_DATA_DIR: data,
      LATCHKEY_PORT: "0",
      LATCHKEY_METRICS_PORT: String(metricsPort),
      LATCHKEY_LOG_FORMAT: "json",
      LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
      HOME: parent,
    };
    const key = await setUp(parent, environment, target);
    const disks = new Map<Place, SmallDisk>();
    const service = { current: null as ReturnType<typeof startLatchkey> | null };
    try {
      for (const { folder, place, megabytes } of PLACES)
        disks.set(place, moveToSmallDisk(join(data, folder), megabytes));
      const running = (service.current = startLatchkey(["serve"], environment));
      const url = await urlOf(running);
      const caller = openCaller(url, key);
      const says = ears(url, metricsPort, () => running.stderr());
      await using sends = startLoad(caller, "/blueprints/sends/trigger", { rows: [{}] }, 2, "sends");
      await using copies = startLoad(caller, "/blueprints/copies/trigger", { rows: ROWS }, 1, "copies");
      const deletes = startDeletes(caller);
      for (const [place, disk] of disks) {
        await sleep(BETWEEN_MS);
        disk.fill();
        // What is removed meanwhile makes no room.
        const refill = setInterval(() => disk.fill(), 250);
        if (place === "log") await endOnFullLog(data);
        await eventually(
          `${place} is said to be full`,
          async () => (await says.saysFull(place)) || undefined,
          PATIENCE_MS,
        );
        await sleep(FULL_MS);
        clearInterval(refill);
        disk.makeRoom();
        await served([sends, copies]);
        await eventually("it is over", async () => (await says.saysRoom()) || undefined, PATIENCE_MS);
      }
      await Promise.all([sends.stop(), copies.stop(), deletes.stop()]);
      const accepted = [...sends.accepted, ...copies.accepted];
      const refusals = [...sends.refusals, ...copies.refusals];
      context.diagnostic(
        JSON.stringify({ accepted: accepted.length, deleted: deletes.deleted.length, refusals }),
      );
      assert.deepEqual(
        refusals.filter(([form]) => form !== AWAY),
        [],
      );
      for (const [number, run] of accepted.entries()) {
        const { body } = await caller.waitForRun(run, PATIENCE_MS);
        assert.equal(body.status, "completed", `${run}: ${JSON.stringify(body)}`);
        if (number % 10 === 0) assert.equal((await caller.get(`/blueprint-runs/${run}/results`)).status, 200);
      }
      for (const run of sends.accepted) assert.equal(books.get(run), 1, run);
      const tombstones = readFileSync(join(data, "tombstones.ndjson"), "utf8");
      assert.ok(deletes.deleted.length > 0);
      for (const id of deletes.deleted)
        assert.match(tombstones, new RegExp(`\\{"v":1,"deleted":"${id}",.*\\}\\n`));
      assert.equal(running.child.exitCode, null);
      const doctor = await latchkeyProcess(["doctor", "--deep"], environment);
      assert.equal(doctor.code, 0, doctor.stdout + doctor.stderr);
    } finally {
      service.current?.child.kill("SIGTERM");
      await service.current?.ended;
      for (const left of processesWith(parent)) process.kill(left, "SIGKILL");
      for (const disk of [...disks.values()].toReversed()) disk[Symbol.dispose]();
      rmSync(parent, { recursive: true, force: true });
    }
  },
);
