import { setTimeout as sleep } from "node:timers/promises";
import { RunNotifier } from "#db/runs/run-notifier.ts";
import { openLog } from "#lib/log.ts";
import { cpuSecondsOf } from "./cpu.ts";
import { enqueueRuns, type BlueprintKey, type RunStage } from "./runs-ours.ts";

const ARRIVE_EVERY_MS = 50;
/** After the last arrival, for what is under way. */
const SETTLE_MS = 3_000;

export interface Steady {
  /** How many arrived, and were completed, a second. */
  readonly arrived: number;
  readonly completed: number;
  /** CPU time of workers and PostgreSQL, of one core. */
  readonly cores: number;
  /** Of the events that were written, how many were delivered; 1: there were none. */
  readonly delivered: number;
  /** From an event to the end of its delivery, for 95 of 100. */
  readonly p95Seconds: number;
}

/** Runs that arrive at a steady rate, whatever becomes of them, as triggers insert them. */
export async function measureSteady(
  stage: RunStage,
  work: BlueprintKey,
  load: {
    readonly workers: number;
    readonly perSecond: number;
    readonly warmSeconds: number;
    readonly seconds: number;
  },
): Promise<Steady> {
  const { database } = stage.installation;
  const news = new RunNotifier(database.db, database, openLog({ level: "silent", format: "json" }));
  await using workers = await stage.startWorkers(load.workers);
  const roots = [stage.server.postmaster, ...workers.pids];
  const began = performance.now();
  const fromMs = load.warmSeconds * 1_000;
  const toMs = fromMs + load.seconds * 1_000;
  let arrived = 0;
  let before = { arrived: 0, cpuSeconds: 0, at: new Date(0) };
  for (let ms = 0; ms < toMs;) {
    const wanted = Math.floor((ms / 1_000) * load.perSecond);
    await enqueueRuns(stage, work, wanted - arrived);
    news.notifyRunnable([stage.ids.accountId]);
    arrived = wanted;
    if (before.cpuSeconds === 0 && ms >= fromMs)
      before = { arrived, cpuSeconds: cpuSecondsOf(roots), at: await readNow(stage) };
    await sleep(ARRIVE_EVERY_MS);
    ms = performance.now() - began;
  }
  const seconds = load.seconds;
  const cores = (cpuSecondsOf(roots) - before.cpuSeconds) / seconds;
  const to = await readNow(stage);
  await sleep(SETTLE_MS);
  await news.close();
  const [row] = await database.db.query<Pick<Steady, "completed" | "delivered" | "p95Seconds">>({
    text: `select (select count(*) from run where ended_at > $1 and ended_at <= $2)::int as completed, seen.* from (
        select count(*) filter (where delivered_at is not null) / greatest(count(*), 1)::float8 + (count(*) = 0)::int as delivered,
          coalesce(percentile_cont(0.95) within group (order by extract(epoch from delivered_at - occurred_at)), 0)::float8 as "p95Seconds"
        from webhook_delivery join webhook_event on id = event_id where occurred_at > $1 and occurred_at <= $2) seen`,
    values: [before.at, to],
    timeoutMs: 60_000,
  });
  const { completed = 0, delivered = 0, p95Seconds = 0 } = row ?? {};
  const each = (count: number): number => count / seconds;
  return {
    arrived: each(arrived - before.arrived),
    completed: each(completed),
    cores,
    delivered,
    p95Seconds,
  };
}

async function readNow({ installation }: RunStage): Promise<Date> {
  const [row] = await installation.database.db.query<{ now: Date }>("select app_now() as now");
  return row?.now ?? new Date(0);
}
