import type { BareAnswer } from "./bare-process.ts";
import { FRESH } from "./fresh.ts";
import type { LoadJob, LoadResult } from "./load-process.ts";
import { startProgram } from "./processes.ts";
import { renderRequest, type Scenario } from "./scenarios.ts";
import type { SqlJob } from "./sql-process.ts";
import type { Stage } from "./stage.ts";

export interface Timing {
  readonly connections: number;
  readonly rounds: number;
  readonly warmSeconds: number;
  readonly seconds: number;
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
  /** Of the lower limit: the median of the rounds, each compared with the limits that were measured next to it. */
  readonly ratio: number;
  readonly goal: number | null;
  readonly errors: number;
}

export async function loadOf(
  stage: Stage,
  url: string,
  scenario: Scenario,
  timing: Timing,
  rate: number | null,
): Promise<LoadResult> {
  const job: LoadJob = {
    host: "127.0.0.1",
    port: Number(new URL(url).port),
    connections: timing.connections,
    requests: scenario.requests(stage).map(renderRequest),
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

/** Rounds of bare server, SQL alone and the service, next to each other: what else the machine does meets all three. */
export async function measure(
  stage: Stage,
  url: string,
  scenario: Scenario,
  timing: Timing,
): Promise<Measured> {
  const answer = await askOnce(stage, url, scenario);
  const rounds: { readonly bare: number; readonly sql: number; readonly load: LoadResult }[] = [];
  for (let round = 0; round < timing.rounds; round++) {
    rounds.push({
      bare: await measureBare(stage, scenario, timing, answer),
      sql: await measureSql(stage, scenario, timing),
      load: await loadOf(stage, url, scenario, timing, null),
    });
  }
  const perSecond = median(rounds.map(({ load }) => load.perSecond));
  const half = await loadOf(stage, url, scenario, timing, perSecond / 2);
  return {
    id: scenario.id,
    title: scenario.title,
    perSecond,
    p50Ms: median(rounds.map(({ load }) => load.p50Ms)),
    p99Ms: median(rounds.map(({ load }) => load.p99Ms)),
    halfRateP50Ms: half.p50Ms,
    halfRateP99Ms: half.p99Ms,
    bodyBytes: Buffer.byteLength(answer.body),
    barePerSecond: median(rounds.map(({ bare }) => bare)),
    sqlPerSecond: median(rounds.map(({ sql }) => sql)),
    ratio: median(rounds.map(({ bare, sql, load }) => load.perSecond / Math.min(bare, sql))),
    goal: scenario.goal,
    errors: 0,
  };
}

/** What the service answers: the constant of the bare server, with the same headers. */
async function askOnce(stage: Stage, url: string, scenario: Scenario): Promise<BareAnswer> {
  const [request] = scenario.requests(stage);
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
): Promise<number> {
  await using bare = startProgram("./bare-process.ts");
  const port = await bare.ask<number>(answer);
  return (await loadOf(stage, `http://127.0.0.1:${port}`, scenario, timing, null)).perSecond;
}

async function measureSql(stage: Stage, scenario: Scenario, timing: Timing): Promise<number> {
  await using sql = startProgram("./sql-process.ts");
  const job: SqlJob = {
    connectionString: stage.installation.database.connectionString,
    scenario: scenario.sql,
    callers: timing.connections,
    warmSeconds: timing.warmSeconds,
    seconds: timing.seconds,
    rows: stage.rows,
  };
  return (await sql.ask<{ perSecond: number }>(job)).perSecond;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
