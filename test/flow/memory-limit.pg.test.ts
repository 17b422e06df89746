// docs/deploy.md#memory: a worker in a group with a memory limit, as in a container, where the kernel kills what wants more.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openDataStage } from "../../bench/data-run.ts";
import { startProgram } from "../../bench/processes.ts";
import { openProgram } from "../browser/program.ts";
import type { Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { until } from "../eventually.ts";
import { isDead } from "../processes.ts";
import type { ServiceProcess } from "../service.ts";
import { afterFaults, callerOf, openFaultStage, SETUP_MS, type FaultStage } from "./fault-stage.ts";
import { openMemoryGroup, skipMemoryGroup, type MemoryGroup } from "./memory-group.ts";

const MIB = 2 ** 20;
const GOOD = 20;
const RECORDS = 1_000_000;

/** A node of operators that takes all the memory there is. */
const GREEDY_NODE = `import { setTimeout as sleep } from "node:timers/promises";
import { defineNode } from "latchkey/node";
export const node = defineNode({
  type: "greedy",
  schema: { type: "object", properties: {} },
  run: async () => {
    const kept = [];
    for (;;) {
      kept.push(Buffer.alloc(${16 * MIB}, 1));
      await sleep(20);
    }
  },
});
`;
const GREEDY = blueprint(
  "greedy",
  `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: takes, type: greedy, from: lines }
- { id: out, type: output, refKey: out, from: takes }`,
);
const GREEDY_PAGE = blueprint(
  "greedy-page",
  `- id: read
  type: browser
  retry: { attempts: 1 }
  timeout: 5m
  steps:
    - goto: "{TARGET}/greedy"
    - expect: { visible: { text: enough } }
      timeout: 5m
    - extract: { fields: { title: h1 } }
- { id: out, type: output, refKey: out, from: read }`,
  "hosts: ['{TARGET}']",
);
const PAGE = `<!doctype html><h1>Greedy</h1><script>
  const kept = [];
  setInterval(() => kept.push(new Uint8Array(${16 * MIB}).fill(1)), 20);
</script>`;

const folder = mkdtempSync(join(tmpdir(), "latchkey-memory-"));
let program: Awaited<ReturnType<typeof openProgram>>;
let group: MemoryGroup;
let stage: FaultStage;
let caller: Caller;

before(
  async () => {
    if (skipMemoryGroup !== false) return;
    program = await openProgram();
    group = openMemoryGroup();
    const file = join(folder, "greedy.js");
    writeFileSync(file, GREEDY_NODE);
    // The kernel's limit is to be the first.
    const environment = {
      LATCHKEY_NODE_FILES: file,
      LATCHKEY_BROWSER: program.path,
      LATCHKEY_BROWSER_MEMORY_MB: "16384",
    };
    stage = await openFaultStage(environment, null, { documents: [GREEDY, GREEDY_PAGE] });
    stage.target.on("GET /greedy", { html: PAGE });
    caller = callerOf(stage, await stage.installation.serveProcess({}, ["api"]));
  },
  { timeout: SETUP_MS },
);
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await group?.remove();
  program?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const serveWorker = async (): Promise<ServiceProcess> =>
  await stage.installation.serveProcess(
    { ...group.environment, LATCHKEY_WORKER_CONCURRENCY: String(GOOD + 10) },
    ["worker"],
  );

const areOver = async (runs: readonly string[]): Promise<boolean> =>
  (
    await stage.installation.database.db.query(
      "select 1 from run where id = any($1) and ended_at is null limit 1",
      [runs],
    )
  ).length === 0;

/** Starts a worker whenever there is none, as a container is started again, until the runs are over; gives the last one and how many died. */
async function superviseUntilOver(
  runs: readonly string[],
): Promise<{ readonly worker: ServiceProcess; readonly deaths: number }> {
  for (let deaths = 0; deaths < 5; deaths++) {
    const worker = await serveWorker();
    await until(
      "the worker is dead or has nothing left to do",
      async () => isDead(worker.child) || (await areOver(runs)),
    );
    if (!isDead(worker.child)) return { worker, deaths };
    assert.equal(worker.child.signalCode, "SIGKILL");
  }
  return assert.fail("five workers died");
}

const storyOf = async (run: string) =>
  (
    await stage.installation.database.db.query<{ status: string; kind: string; detail: string }>(
      `select status, error_kind as kind, error_detail as detail from run where id = $1`,
      [run],
    )
  )[0];

const triggered = async (name: string, body: object): Promise<string> => {
  const answer = await caller.post(`/blueprints/${name}/trigger`, body);
  assert.equal(answer.status, 202, answer.text);
  return answer.body.id;
};

const triggerGood = async (): Promise<readonly string[]> =>
  await Promise.all(Array.from({ length: GOOD }, async () => await stage.trigger(caller, "sends")));

test(
  "a run that takes more memory than its worker has fails with the reason; nothing that was accepted is lost, nothing is written twice",
  { skip: skipMemoryGroup, timeout: SETUP_MS },
  async (context) => {
    group.setLimit(512 * MIB);
    const release = stage.holdReads();
    const good = await triggerGood();
    const greedy = await triggered("greedy", { rows: [] });
    // The good ones are under way when the first worker is killed.
    setTimeout(release, 1_000);
    const { worker, deaths } = await superviseUntilOver([...good, greedy]);
    context.diagnostic(`${deaths} workers and ${group.countKills()} processes were killed`);
    assert.equal(deaths, 2);
    assert.equal(group.countKills(), 3, "the third one was the quarantine's");
    const story = await storyOf(greedy);
    assert.deepEqual([story?.status, story?.kind], ["failed", "interrupted"]);
    assert.match(story?.detail ?? "", /lost its worker 3 times .* memory/);
    assert.deepEqual(new Set((await stage.ended(good)).map(({ status }) => status)), new Set(["completed"]));
    await stage.check(caller, good);
    await afterFaults(stage);
    await worker.end();
  },
);

test(
  "a browser that takes more memory than its worker has ends with its run; the worker and its other runs go on",
  { skip: skipMemoryGroup, timeout: SETUP_MS },
  async () => {
    group.setLimit(800 * MIB);
    const kills = group.countKills();
    const worker = await serveWorker();
    const greedy = await triggered("greedy-page", {});
    const good = await triggerGood();
    await until("all are over", async () => await areOver([...good, greedy]));
    assert.equal(isDead(worker.child), false);
    assert.ok(group.countKills() > kills, "by the kernel");
    const story = await storyOf(greedy);
    assert.equal(story?.status, "failed");
    assert.match(story?.detail ?? "", /the page crashed|the browser ended by itself/);
    assert.deepEqual(new Set((await stage.ended(good)).map(({ status }) => status)), new Set(["completed"]));
    await afterFaults(stage);
    await worker.end();
  },
);

test(
  "a million records pass through a worker with 512 MiB",
  { skip: skipMemoryGroup, timeout: 900_000 },
  async (context) => {
    group.setLimit(512 * MIB);
    const kills = group.countKills();
    await using target = startProgram("./data-target-process.ts");
    await using data = await openDataStage(
      `http://127.0.0.1:${await target.ask<number>({})}`,
      group.environment,
    );
    const run = await data.measure("json-simple", RECORDS, (text) => context.diagnostic(text));
    assert.deepEqual([run.records, group.countKills()], [RECORDS, kills]);
  },
);
