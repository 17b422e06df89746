import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openCaller, type Caller } from "../test/caller.ts";
import { startProgram } from "./processes.ts";
import { cpuSecondsOf } from "./cpu.ts";
import { measureDrain, type Contender, type Drain, type DrainTiming } from "./runs-drain.ts";
import { median } from "./runs-latency.ts";
import { openRunStage, ourContender, type RunStage } from "./runs-ours.ts";
import { plantedId, plantRuns, settleTables } from "./runs-plant.ts";
import { renderLines } from "./lines.ts";
import type { Look, MemoryUse } from "./serve-process.ts";
import type { BenchServer } from "./server.ts";

export interface WaitingOptions extends DrainTiming {
  readonly rounds: number;
  readonly waiting: number;
  readonly idleSeconds: number;
  readonly concurrency: number;
  readonly targetUrl: string;
}

/** What waits: nothing, runs at a review, or runs behind a credential that another run has. */
type Kind = "nothing" | "review" | "credential";

export interface WaitingRow {
  readonly kind: Kind;
  readonly worker: MemoryUse;
  readonly api: MemoryUse;
  /** Of worker, API and database together, of one core. */
  readonly idleCpuShare: number;
  /** Other runs of the same account; null: none of them ended. */
  readonly perSecond: number | null;
  /** Of the speed with nothing waiting, round by round; null: none ended. */
  readonly ratio: number | null;
  /** What became of one of the planted runs. */
  readonly resumed: string;
}

const KINDS: readonly Kind[] = ["nothing", "review", "credential"];
const GUESS = 500;
const SETTLE_MS = 3_000;
const PARK_WAIT_MS = 20_000;
const END_WAIT_MS = 120_000;

const documents = (heldUrl: string): readonly string[] => [
  `strategy: strat_busy
account: acme
concurrency: 1
hosts: [${heldUrl}]
fields:
  - { key: token, label: Token, type: password, required: true }
login: { type: bearer, token: token }`,
  `blueprint: gated
account: acme
nodes:
  - { id: given, type: input, refKey: given }
  - { id: records, type: parse, from: given, format: json }
  - { id: gate, type: review, from: records, title: Look }
  - { id: out, type: output, refKey: out, from: gate }`,
  `blueprint: busy
account: acme
timeout: 7d
credentials: { main: { strategy: strat_busy } }
nodes:
  - { id: read, type: http, credential: main, timeout: 24h, request: { url: /held }, parse: { format: json } }
  - { id: out, type: output, refKey: out, from: read }`,
];

/** An installation in which so many runs wait. */
interface WaitingStage {
  readonly kind: Kind;
  readonly stage: RunStage;
  readonly others: Contender;
  /** What people would do for one of the planted runs; tells what became of it. */
  resume(): Promise<string>;
}

export async function measureWaiting(
  server: BenchServer,
  options: WaitingOptions,
  say: (text: string) => void,
): Promise<readonly WaitingRow[]> {
  await using opened = new AsyncDisposableStack();
  const stages: WaitingStage[] = [];
  for (const kind of KINDS) {
    say(
      `preparing an installation in which ${kind === "nothing" ? "nothing waits" : `${options.waiting} runs wait (${kind})`}`,
    );
    stages.push(await openWaiting(kind, server, options, opened));
  }
  const rounds: (Drain | null)[][] = [];
  for (let round = 0; round < options.rounds; round++) {
    const drains: (Drain | null)[] = [];
    for (const { kind, others } of stages) {
      const drain = await drainBeside(others, options);
      say(
        `${kind}: ${drain === null ? "no other run ended" : `${Math.round(drain.perSecond)} other runs/s`}`,
      );
      drains.push(drain);
    }
    rounds.push(drains);
  }
  const rows: WaitingRow[] = [];
  for (const [index, waiting] of stages.entries()) {
    const drains = rounds.map((drains) => drains[index] ?? null);
    const ratios = rounds.map(
      ([none], round) => (drains[round]?.perSecond ?? 0) / (none?.perSecond ?? Infinity),
    );
    const ended = drains.every((drain) => drain !== null);
    await waiting.others.prefill(0);
    const idle = await lookAtIdle(waiting.stage, options.idleSeconds);
    rows.push({
      kind: waiting.kind,
      ...idle,
      perSecond: ended ? median(drains.map((drain) => drain?.perSecond ?? 0)) : null,
      ratio: ended ? median(ratios) : null,
      resumed: await waiting.resume(),
    });
  }
  return rows;
}

/** Starvation is a result, not the end of the bench. */
async function drainBeside(others: Contender, options: WaitingOptions): Promise<Drain | null> {
  try {
    return await measureDrain(others, 1, options, GUESS);
  } catch (error) {
    if (error instanceof Error && error.message.endsWith("no run ended")) return null;
    throw error;
  }
}

async function openWaiting(
  kind: Kind,
  server: BenchServer,
  options: WaitingOptions,
  opened: AsyncDisposableStack,
): Promise<WaitingStage> {
  const target = opened.use(await startHeldTarget());
  const stage = opened.use(await openRunStage(server, options, { others: documents(target.url) }));
  const others = async (): Promise<Contender> =>
    await ourContender(stage, "noop", `other runs, ${kind}`, { keep: true });
  if (kind === "nothing")
    return { kind, stage, others: await others(), resume: async () => "nothing was planted" };
  const service = await stage.installation.serveProcess();
  const caller = openCaller(service.url, stage.apiKey);
  const templateId = kind === "review" ? await waitForReview(caller) : await waitForCredential(caller);
  await service.end();
  const { connectionString, db } = stage.installation.database;
  // Before all others in the order of triggers.
  await plantRuns(connectionString, { templateId, count: options.waiting, apartMs: 1, mark: "0" });
  await settleTables(connectionString);
  // The oldest, whose turn is next. A copy has no objects: this one is given those of the first.
  const tried = await plantedId(db, "0", options.waiting);
  await copyObjects(stage, templateId, tried);
  const resume = async (): Promise<string> => {
    if (kind === "credential") target.release();
    else await approve(stage, tried);
    return await waitForEnd(stage, tried);
  };
  return { kind, stage, others: await others(), resume };
}

async function trigger(caller: Caller, blueprint: string, body: object): Promise<string> {
  const answer = await caller.post(`/blueprints/${blueprint}/trigger`, body);
  if (answer.status !== 202)
    throw new Error(`A trigger of the preparation was answered ${answer.status}: ${answer.text}`);
  return answer.body.id;
}

async function waitForReview(caller: Caller): Promise<string> {
  const id = await trigger(caller, "gated", { given: '[{"number":1}]' });
  for (let waitedMs = 0; waitedMs < PARK_WAIT_MS; waitedMs += 50) {
    const { body } = await caller.get(`/blueprint-runs/${id}/status`);
    if (body.progress_step === "awaiting_review") return id;
    await sleep(50);
  }
  throw new Error("The run of the preparation did not come to its review");
}

/** One run that has the credential until its target answers, and one behind it. Gives the second. */
async function waitForCredential(caller: Caller): Promise<string> {
  const credentialId = await connect(caller, "strat_busy", { token: "bench" });
  const first = await trigger(caller, "busy", { credential_id: credentialId });
  for (let waitedMs = 0; waitedMs < PARK_WAIT_MS; waitedMs += 50) {
    const { body } = await caller.get(`/blueprint-runs/${first}/status`);
    if (body.status === "running") return await trigger(caller, "busy", { credential_id: credentialId });
    await sleep(50);
  }
  throw new Error("The run of the preparation did not begin");
}

async function copyObjects({ installation, ids }: RunStage, fromRun: string, toRun: string): Promise<void> {
  const folder = join(installation.dataFolder, "objects");
  for (const kind of ["steps", "results"]) {
    const of = (runId: string): string => join(folder, kind, ids.accountId, runId);
    if (existsSync(of(fromRun))) await cp(of(fromRun), of(toRun), { recursive: true });
  }
}

async function approve({ installation }: RunStage, runId: string): Promise<void> {
  const [review] = await installation.database.db.query<{ id: string }>(
    "select id from review where run_id = $1",
    [runId],
  );
  const approved = await installation.command("reviews", "approve", review?.id ?? "", "--by", "bench");
  if (approved.code !== 0) throw new Error(approved.stderr);
}

/** With a real worker, which has nothing else to do. */
async function waitForEnd({ installation }: RunStage, runId: string): Promise<string> {
  const service = await installation.serveProcess({}, ["worker"]);
  const began = performance.now();
  let status = "";
  while (performance.now() - began < END_WAIT_MS) {
    const [row] = await installation.database.db.query<{ status: string; isOver: boolean }>(
      `select status, ended_at is not null as "isOver" from run where id = $1`,
      [runId],
    );
    status = row?.status ?? "gone";
    if (row?.isOver === true) break;
    await sleep(50);
  }
  await service.end("SIGKILL");
  return `${status} after ${((performance.now() - began) / 1_000).toFixed(1)} s`;
}

/** Memory of an API and a worker process, and CPU of both and the database, while nothing happens. */
async function lookAtIdle(
  stage: RunStage,
  seconds: number,
): Promise<Pick<WaitingRow, "worker" | "api" | "idleCpuShare">> {
  const options = { environment: stage.installation.environment, options: ["--expose-gc"] };
  await using api = startProgram("./serve-process.ts", { ...options, roles: ["api"] });
  await using worker = startProgram("./serve-process.ts", { ...options, roles: ["worker"] });
  await Promise.all([api, worker].map(async (program) => await program.ask({ want: "url" } satisfies Look)));
  await sleep(SETTLE_MS);
  const roots = [api.pid, worker.pid, stage.server.postmaster];
  const [beganMs, before] = [performance.now(), cpuSecondsOf(roots)];
  await sleep(seconds * 1_000);
  const idleCpuShare = ((cpuSecondsOf(roots) - before) * 1_000) / (performance.now() - beganMs);
  const look: Look = { want: "memory" };
  return { worker: await worker.ask<MemoryUse>(look), api: await api.ask<MemoryUse>(look), idleCpuShare };
}

interface HeldTarget extends AsyncDisposable {
  readonly url: string;
  /** Answers all that wait, and whatever comes from then on. */
  release(): void;
}

/** A target that does not answer until it is told to: the run that asks it has the credential for so long. */
async function startHeldTarget(): Promise<HeldTarget> {
  const held = Promise.withResolvers<void>();
  const server: Server = createServer((_request, response) => {
    void held.promise.then(() =>
      response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}'),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    release: () => held.resolve(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const mib = (bytes: number): string => `${Math.round(bytes / 1_048_576)}`;

export function renderWaiting(rows: readonly WaitingRow[], count: number, markdown: boolean): string {
  const what: Record<Kind, string> = {
    nothing: "nothing waits",
    review: `${count.toLocaleString("en-US")} at a review`,
    credential: `${count.toLocaleString("en-US")} behind a busy credential`,
  };
  const lines = rows.map((row) => [
    what[row.kind],
    `${mib(row.worker.heapBytes)} / ${mib(row.worker.rssBytes)}`,
    `${mib(row.api.heapBytes)} / ${mib(row.api.rssBytes)}`,
    `${(row.idleCpuShare * 100).toFixed(1)} %`,
    row.perSecond === null ? "none" : String(Math.round(row.perSecond)),
    row.ratio === null ? "" : `${Math.round(row.ratio * 100)} %`,
    row.resumed,
  ]);
  const headings = [
    "",
    "worker, heap / resident MiB",
    "API, heap / resident MiB",
    "CPU while idle",
    "other runs/s",
    "of those with nothing waiting",
    "one of them, when it may",
  ];
  return renderLines([headings, ...lines], markdown);
}
