import { setTimeout as sleep } from "node:timers/promises";
import { costsBetween, lookAtCosts, type Costs } from "./costs.ts";
import type { RunStage } from "./runs-ours.ts";

const EVENTS = 30_000;
/** What comes before is the worker's start, whose code is still cold. */
const WARM = 8_000;
const MEASURED = 16_000;

export interface DeliveryCosts {
  readonly perSecond: number;
  /** Of a delivery. */
  readonly costs: Costs;
}

/** What one worker delivers to the stage's only endpoint while there is nothing else to do. */
export async function measureDeliveries(stage: RunStage): Promise<DeliveryCosts> {
  const { installation, server } = stage;
  const { db } = installation.database;
  await db.query({
    text: `with event as (
        insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
        select new_event_id(), account_id, 'run.completed', 'run_' || n, app_now(), jsonb_build_object('id', 'run_0123456789abcdef' || n,
          'runKey', gen_random_uuid(), 'status', 'completed', 'progressStep', 'completed', 'createdAt', app_now(), 'startedAt', app_now(),
          'endedAt', app_now(), 'blueprintId', 'bp_0123456789abcdef')
        from webhook_endpoint, generate_series(1, $1) n returning id)
      insert into webhook_delivery (endpoint_id, event_id, due_at)
      select webhook_endpoint.id, event.id, app_now() from event, webhook_endpoint`,
    values: [EVENTS],
    timeoutMs: 60_000,
  });
  for (const table of ["webhook_event", "webhook_delivery"]) await db.query(`analyze ${table}`);
  await db.query({ text: "checkpoint", timeoutMs: 60_000 });
  await using workers = await stage.startWorkers(1);
  const look = async (from: number) => {
    for (let delivered = 0; ; await sleep(100)) {
      delivered = await countAttempts(installation);
      if (delivered >= from)
        return { delivered, costs: await lookAtCosts(server, workers.pids), atMs: performance.now() };
    }
  };
  const before = await look(WARM);
  const after = await look(before.delivered + MEASURED);
  const count = after.delivered - before.delivered;
  return {
    perSecond: count / ((after.atMs - before.atMs) / 1_000),
    costs: await costsBetween(server, before.costs, after.costs, count),
  };
}

async function countAttempts({ database }: RunStage["installation"]): Promise<number> {
  const [row] = await database.db.query<{ total: number }>(
    "select count(*)::int as total from webhook_attempt",
  );
  return row?.total ?? 0;
}

export const renderDeliveries = ({ perSecond, costs }: DeliveryCosts): string =>
  `a delivery, while there is nothing else to do: ${Math.round(costs.processUs)} µs of CPU in the worker, ${Math.round(costs.postgresUs)} in PostgreSQL, ` +
  `${costs.walRecords.toFixed(1)} records and ${Math.round(costs.walBytes)} bytes of the log; ${Math.round(perSecond)} a second`;
