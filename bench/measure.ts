import type { BareAnswer } from "./bare-process.ts";
import { costsBetween, cpuUsOf, lookAtCosts, medianCosts, readStatements, type Costs } from "./costs.ts";
import { FRESH } from "./fresh.ts";
import type { LoadJob, LoadResult } from "./load-process.ts";
import { startProgram } from "./processes.ts";
import { median } from "./runs-latency.ts";
import { renderRequest, type RequestKind, type Scenario, type WireRequest } from "./scenarios.ts";
import type { SqlJob } from "./sql-process.ts";
import type { SqlWork } from "./sql-rows.ts";
import type { Stage } from "./stage.ts";

export interface Timing {
  readonly connections: number;
  readonly rounds: number;
  readonly warmSeconds: number;
  readonly seconds: number;
}

/** Who answers: its address and its process. */
export interface Answering {
  readonly url: string;
  readonly pid: number;
}

/** A rate together with what each request cost. */
export interface Rated {
  readonly perSecond: number;
  readonly costs: Costs;
}

export interface Loaded extends Rated {
  readonly load: LoadResult;
  /** With those of the warm-up. */
  readonly answeredInAll: number;
}

interface Round {
  /** Requests a second of a bare server, and of SQL alone. */
  readonly bare: number;
  readonly sql: Rated;
  /** A bare server that does the SQL for each request. */
  readonly together: Rated;
  readonly service: Loaded;
}

export interface Measured {
  readonly id: string;
  readonly title: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly halfRateP50Ms: number;
  readonly halfRateP99Ms: number;
  readonly bodyBytes: number;
  readonly barePerSecond: number;
  readonly sqlPerSecond: number;
  readonly togetherPerSecond: number;
  readonly costs: Costs;
  readonly togetherCosts: Costs;
  /** Of bare server and SQL together: the median of the rounds, each compared with what was measured next to it. */
  readonly ofTogether: number;
  /** The same by CPU time of all processes, which what else the machine does changes less. */
  readonly ofTogetherByCpu: number;
  /** Of the lower of bare server and SQL alone, which each have the cores for themselves. */
  readonly ratio: number;
  readonly goal: number | null;
  /** Where the server's time went; empty unless asked for. */
  readonly statements: string;
}

export async function loadOf(
  stage: Stage,
  url: string,
  scenario: RequestKind,
  timing: Timing,
  rate: number | null,
): Promise<LoadResult> {
  return await send(url, scenario, await scenario.requests(stage, url), timing, rate);
}

async function send(
  url: string,
  scenario: RequestKind,
  requests: readonly WireRequest[],
  timing: Timing,
  rate: number | null,
): Promise<LoadResult> {
  const job: LoadJob = {
    host: "127.0.0.1",
    port: Number(new URL(url).port),
    connections: timing.connections,
    requests: requests.map(renderRequest),
    expectedStatus: scenario.status,
    rate,
    warmSeconds: timing.warmSeconds,
    seconds: timing.seconds,
  };
  await using load = startProgram("./load-process.ts");
  const result = await load.ask<LoadResult>(job);
  if (result.errors > 0)
    throw new Error(`${scenario.title}: ${result.errors} errors, the first: ${result.firstError}`);
  return result;
}

/** Full load, and what each of its requests cost. Nothing else may ask the server meanwhile. */
export async function loadAndLook(
  stage: Stage,
  { url, pid }: Answering,
  scenario: RequestKind,
  timing: Timing,
): Promise<Loaded> {
  const { warmSeconds, seconds } = timing;
  const run = async (requests: readonly WireRequest[], lasting: number): Promise<LoadResult> =>
    await send(url, scenario, requests, { ...timing, warmSeconds: 0, seconds: lasting }, null);
  const warm = await run(await scenario.requests(stage, url), warmSeconds);
  // What is made for the requests is not their cost.
  const requests = await scenario.requests(stage, url);
  const before = await lookAtCosts(stage.server, [pid]);
  const load = await run(requests, seconds);
  const after = await lookAtCosts(stage.server, [pid]);
  return {
    perSecond: load.perSecond,
    costs: await costsBetween(stage.server, before, after, load.answered),
    load,
    answeredInAll: warm.answered + load.answered,
  };
}

/** Rounds of bare server, SQL alone, both together and the service, next to each other: what else the machine does meets all four. */
export async function measure(
  stage: Stage,
  service: Answering,
  scenario: Scenario,
  timing: Timing,
  withStatements: boolean,
): Promise<Measured> {
  const answer = await askOnce(stage, service.url, scenario);
  const rounds: Round[] = [];
  let statements = "";
  for (let round = 0; round < timing.rounds; round++) {
    const bare = await measureBare(stage, scenario, timing, answer);
    const sql = await measureSql(stage, scenario, timing);
    const together = await measureBare(stage, scenario, timing, {
      ...answer,
      sql: sqlWork(stage, scenario, timing),
    });
    if (withStatements) await readStatements(stage.server, 1);
    const loaded = await loadAndLook(stage, service, scenario, timing);
    if (withStatements) statements = await readStatements(stage.server, loaded.answeredInAll);
    rounds.push({ bare: bare.perSecond, sql, together, service: loaded });
  }
  const perSecond = median(rounds.map((each) => each.service.perSecond));
  const half = await loadOf(stage, service.url, scenario, timing, perSecond / 2);
  return {
    id: scenario.id,
    title: scenario.title,
    ...mediansOf(rounds),
    halfRateP50Ms: half.p50Ms,
    halfRateP99Ms: half.p99Ms,
    bodyBytes: Buffer.byteLength(answer.body),
    goal: scenario.goal,
    statements,
  };
}

function mediansOf(rounds: readonly Round[]) {
  const of = (value: (round: Round) => number): number => median(rounds.map(value));
  return {
    perSecond: of(({ service }) => service.perSecond),
    p50Ms: of(({ service }) => service.load.p50Ms),
    p99Ms: of(({ service }) => service.load.p99Ms),
    barePerSecond: of(({ bare }) => bare),
    sqlPerSecond: of(({ sql }) => sql.perSecond),
    togetherPerSecond: of(({ together }) => together.perSecond),
    costs: medianCosts(rounds.map(({ service }) => service.costs)),
    togetherCosts: medianCosts(rounds.map(({ together }) => together.costs)),
    ofTogether: of(({ service, together }) => service.perSecond / together.perSecond),
    ofTogetherByCpu: of(({ service, together }) => cpuUsOf(together.costs) / cpuUsOf(service.costs)),
    ratio: of(({ service, bare, sql }) => service.perSecond / Math.min(bare, sql.perSecond)),
  };
}

/** What the service answers: the constant of the bare server, with the same headers. */
async function askOnce(stage: Stage, url: string, scenario: Scenario): Promise<BareAnswer> {
  const [request] = await scenario.requests(stage, url);
  if (!request) throw new Error(`${scenario.title} has no request`);
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
    name,
    value.replace(FRESH, `once-${scenario.id}-${process.pid}`),
  ]);
  const response = await fetch(`${url}${request.path}`, {
    method: request.method,
    headers,
    ...(request.method === "POST" ? { body: request.body } : {}),
  });
  const body = await response.text();
  if (response.status !== scenario.status)
    throw new Error(`${scenario.title} is answered ${response.status}: ${body}`);
  const names = ["content-type", "x-request-id", "cache-control", "idempotent-replay"];
  const kept = names.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return {
    status: response.status,
    headers: { ...Object.fromEntries(kept), "content-length": String(Buffer.byteLength(body)) },
    body,
  };
}

async function measureBare(
  stage: Stage,
  scenario: Scenario,
  timing: Timing,
  answer: BareAnswer,
): Promise<Rated> {
  await using bare = startProgram("./bare-process.ts");
  const url = `http://127.0.0.1:${await bare.ask<number>(answer)}`;
  return await loadAndLook(stage, { url, pid: bare.pid }, scenario, timing);
}

async function measureSql(stage: Stage, scenario: Scenario, timing: Timing): Promise<Rated> {
  await using sql = startProgram("./sql-process.ts");
  const work = sqlWork(stage, scenario, timing);
  const ask = async (seconds: number): Promise<{ calls: number; perSecond: number }> =>
    await sql.ask({ ...work, seconds } satisfies SqlJob);
  await ask(timing.warmSeconds);
  const before = await lookAtCosts(stage.server, [sql.pid]);
  const { calls, perSecond } = await ask(timing.seconds);
  const after = await lookAtCosts(stage.server, [sql.pid]);
  return { perSecond, costs: await costsBetween(stage.server, before, after, calls) };
}

const sqlWork = (stage: Stage, scenario: Scenario, timing: Timing): SqlWork => ({
  connectionString: stage.installation.database.connectionString,
  scenario: scenario.sql,
  callers: timing.connections,
  rows: stage.rows,
});
