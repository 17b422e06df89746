import { cpuUsOf } from "./costs.ts";
import type { GroupId } from "./runs-contest.ts";
import { ratioOfPairs, type Ratio } from "./pairs.ts";
import { measureDrain, type Contender, type Drain, type DrainTiming } from "./runs-drain.ts";
import { median } from "./runs-latency.ts";
import { renderLines } from "./lines.ts";
import { measureSteady } from "./runs-steady.ts";
import { ourContender, type RunStage } from "./runs-ours.ts";
import { measureDeliveries, renderDeliveries } from "./webhook-delivery.ts";

export interface WebhookOptions extends DrainTiming {
  readonly groups: readonly GroupId[];
  readonly rounds: number;
  readonly workers: readonly number[];
  readonly targetUrl: string;
  /** Also at this share of the rate without an endpoint, so that the machine has time to spare; 0: not. */
  readonly load: number;
}

/**
 * Without an endpoint; with one whose events are written and wait; with one that gets them while the runs go on, and one that only gets
 * each run's end.
 */
const KINDS = ["none", "written", "delivered", "ends"] as const;
type Kind = (typeof KINDS)[number];

const TITLES: Readonly<Record<Kind, string>> = {
  none: "no endpoint",
  written: "events written",
  delivered: "events delivered, two each",
  ends: "ends of runs delivered",
};

export interface WebhookRow {
  readonly work: Work;
  readonly kind: Kind;
  readonly workers: number;
  readonly perSecond: number;
  /** Of the events that were written, how many were delivered by the end of the drain. */
  readonly delivered: number;
  /** How old the oldest of the others was by then. */
  readonly lagSeconds: number;
  /** Of the rate without an endpoint, round by round. */
  readonly ratio: number;
  /** Of what a run costs without an endpoint, in CPU time of workers and PostgreSQL: also says something beside other work. */
  readonly cpu: Ratio;
}

const WORKS = { noop: "the smallest runs", steps: "three steps with GETs" } as const;
type Work = keyof typeof WORKS & GroupId;

const GUESS = 500;

/** The rate of the smallest runs and of runs of three steps, whose events an endpoint gets, in the same rounds as without one. */
export async function measureWebhooks(
  stage: RunStage,
  options: WebhookOptions,
  say: (text: string) => void,
): Promise<readonly WebhookRow[]> {
  const rows: WebhookRow[] = [];
  for (const [work, workers] of options.groups.flatMap((each) =>
    options.workers.map((count) => [each, count] as const),
  )) {
    const runs = await ourContender(stage, work, "webhooks");
    const drains: Record<Kind, (Drain & Delivered)[]> = { none: [], written: [], delivered: [], ends: [] };
    for (let round = 0; round < options.rounds; round++) {
      // Each kind is first as often as the others.
      for (const [at] of KINDS.entries()) {
        const kind = KINDS[(at + round) % KINDS.length] ?? "none";
        await prepare(stage, kind, options.targetUrl);
        const drain = await measureDrain(of(runs, kind), workers, options, GUESS);
        const { perSecond, costs } = drain;
        const { delivered, lagSeconds } = await readDelivered(stage);
        say(
          `${WORKS[work]}, ${TITLES[kind]}, ${workers} workers: ${Math.round(perSecond)} runs a second, ${Math.round(cpuUsOf(costs))} µs of CPU each, ${percent(delivered)} delivered, ${lagSeconds.toFixed(1)} s behind`,
        );
        drains[kind].push({ ...drain, delivered, lagSeconds });
      }
    }
    for (const kind of KINDS) {
      const pairs = drains[kind].map((here, round) => ({ here, there: drains.none[round] ?? here }));
      rows.push({
        work,
        kind,
        workers,
        perSecond: median(drains[kind].map(({ perSecond }) => perSecond)),
        delivered: median(drains[kind].map(({ delivered }) => delivered)),
        lagSeconds: median(drains[kind].map(({ lagSeconds }) => lagSeconds)),
        ratio: median(pairs.map(({ here, there }) => here.perSecond / there.perSecond)),
        cpu: ratioOfPairs(pairs.map(({ here, there }) => ({ here: here.costs, there: there.costs }))),
      });
    }
    if (options.load > 0)
      await saySteady(
        stage,
        {
          ...options,
          runs,
          work,
          count: workers,
          top: median(drains.none.map(({ perSecond }) => perSecond)),
        },
        say,
      );
  }
  // A worker would execute what the drains have left, beside the deliveries.
  await (await ourContender(stage, "noop", "webhooks")).prefill(0);
  await prepare(stage, "delivered", options.targetUrl);
  say(renderDeliveries(await measureDeliveries(stage)));
  await prepare(stage, "none", options.targetUrl);
  return rows;
}

/** Runs that arrive at a part of the rate that was drained: with time to spare, is every run and every event in time? */
async function saySteady(
  stage: RunStage,
  options: WebhookOptions & {
    readonly runs: Contender;
    readonly work: Work;
    readonly count: number;
    readonly top: number;
  },
  say: (text: string) => void,
): Promise<void> {
  const { work, count, load, top, warmSeconds, seconds, rounds } = options;
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const found: Partial<Record<Kind, number>> = {};
    for (const kind of round % 2 === 0
      ? (["none", "delivered"] as const)
      : (["delivered", "none"] as const)) {
      await options.runs.prefill(0);
      await prepare(stage, kind, options.targetUrl);
      const steady = await measureSteady(stage, work, {
        workers: count,
        perSecond: top * load,
        warmSeconds,
        seconds: 3 * seconds,
      });
      found[kind] = steady.completed / steady.arrived;
      say(
        `${WORKS[work]}, ${TITLES[kind]}, ${count} workers, at ${percent(load)} of the rate: ${Math.round(steady.arrived)} runs a second arrive, ` +
          `${Math.round(steady.completed)} are completed, ${steady.cores.toFixed(2)} cores, ${percent(steady.delivered)} delivered, ` +
          `95 of 100 within ${steady.p95Seconds.toFixed(1)} s`,
      );
    }
    ratios.push((found.delivered ?? 0) / (found.none ?? 1));
  }
  say(
    `${WORKS[work]}, ${count} workers, at ${percent(load)} of the rate: with an endpoint ${percent(median(ratios))} of without`,
  );
}

type Delivered = Pick<WebhookRow, "delivered" | "lagSeconds">;

async function readDelivered({ installation }: RunStage): Promise<Delivered> {
  const [row] = await installation.database.db.query<Delivered>({
    text: `select count(*) filter (where delivered_at is not null) / greatest(count(*), 1)::float8 as delivered,
        coalesce(extract(epoch from max(occurred_at) - min(occurred_at) filter (where delivered_at is null)), 0)::float8 as "lagSeconds"
      from webhook_delivery join webhook_event on id = event_id`,
    timeoutMs: 60_000,
  });
  return row ?? { delivered: 0, lagSeconds: 0 };
}

const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** Its own name, because each kind drains another backlog. */
const of = (runs: Contender, kind: Kind): Contender => ({ ...runs, id: `${runs.id} ${kind}` });

async function prepare({ installation }: RunStage, kind: Kind, targetUrl: string): Promise<void> {
  const { db } = installation.database;
  // What is only deleted would still be in the way of the next round.
  await db.query({
    text: "truncate webhook_attempt, webhook_delivery, webhook_claim, webhook_event",
    timeoutMs: 60_000,
  });
  for (const table of ["secret", "endpoint"]) await db.query(`delete from webhook_${table}`);
  if (kind === "none") return;
  const events = kind === "ends" ? ["--events", "run.completed,run.failed,run.cancelled"] : [];
  const words = ["webhooks", "create", `${targetUrl}/hooks`, "--account", "acme", ...events];
  const { code, stderr } = await installation.command(...words);
  if (code !== 0) throw new Error(stderr);
  if (kind === "written") await db.query("delete from webhook_secret");
}

export function renderWebhooks(rows: readonly WebhookRow[], isMarkdown: boolean): string {
  const lines = rows.map(({ work, kind, workers, perSecond, delivered, lagSeconds, ratio, cpu }) => [
    WORKS[work],
    TITLES[kind],
    String(workers),
    String(Math.round(perSecond)),
    kind === "none" ? "" : percent(delivered),
    kind === "none" ? "" : lagSeconds.toFixed(1),
    percent(ratio),
    `${cpu.median.toFixed(2)} (${cpu.low.toFixed(2)} to ${cpu.high.toFixed(2)})`,
  ]);
  return renderLines(
    [["runs", "with", "workers", "runs/s", "delivered", "s behind", "of none", "CPU of none"], ...lines],
    isMarkdown,
  );
}
