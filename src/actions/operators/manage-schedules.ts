import { accountIdsOf } from "#actions/operator-error.ts";
import { writesOf } from "#actions/runs/blueprint-writes.ts";
import { runScheduleNow, unknownSchedule } from "#actions/schedules/operate-schedules.ts";
import type { Needs } from "#actions/services.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  findSeenSchedule,
  listScheduleRuns,
  listSeenSchedules,
  type SeenSchedule,
} from "#db/operators/operator-schedules.ts";
import { limits } from "#domain/limits.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import { stateOfSchedule, type ScheduleState } from "#domain/schedule.ts";
import { readCron, timesFrom } from "#lib/cron.ts";
import { actorOf, requireFactor, type Principal } from "./operator-caller.ts";

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

const showSchedule = (row: SeenSchedule) => ({
  id: row.id,
  account: row.account,
  key: row.key,
  blueprint: row.blueprint,
  cron: row.cron,
  time_zone: row.timeZone,
  missed: row.missed,
  overlap: row.overlap,
  jitter: row.jitter,
  is_from_document: row.isFromDocument,
  state: stateOfSchedule(row),
  paused_reason: row.pausedReason,
  paused_detail: row.pausedDetail,
  paused_at: iso(row.pausedAt),
  locked_until: iso(row.lockedUntil),
  next_at: iso(row.nextAt),
  last:
    row.lastDueAt === null || row.lastOutcome === null
      ? null
      : { due_at: row.lastDueAt.toISOString(), outcome: row.lastOutcome, run_id: row.lastRunId },
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

interface ScheduleQuery {
  cursor?: string;
  limit?: number;
  account?: string;
  blueprint?: string;
  state?: ScheduleState;
}

/** `limit`: the accounts of a caller who may see no others; null: all. Throws Problem 422, OperatorError. */
export async function listSchedules(db: Database, query: ScheduleQuery, limit: readonly string[] | null) {
  const page = readPage(query);
  const filter = {
    accountIds: await accountIdsOf(db, query.account, limit),
    blueprint: query.blueprint ?? null,
    state: query.state ?? null,
  };
  const rows = await listSeenSchedules(db, filter, page);
  return makePage(rows, page, ({ id, createdAt }) => ({ atMs: createdAt.getTime(), id }), showSchedule);
}

/** A schedule with its next times and its last runs. Throws OperatorError. */
export async function getSchedule(db: Database, id: string) {
  const row = await findSeenSchedule(db, id);
  if (row === undefined) throw unknownSchedule(id);
  const runs = await listScheduleRuns(db, id, {
    limit: limits.scheduleLastRuns,
    among: limits.scheduleLookedAtFires,
  });
  return {
    ...showSchedule(row),
    credentials: [...row.credentialIds],
    next: nextTimes(row).map((time) => time.toISOString()),
    runs: runs.map((run) => ({
      id: run.id,
      due_at: run.dueAt.toISOString(),
      is_manual: run.isManual,
      status: run.status,
      progress_step: run.progressStep,
      ended_at: iso(run.endedAt),
    })),
  };
}

function nextTimes({ cron, timeZone, nextAt }: SeenSchedule): readonly Date[] {
  const read = readCron(cron, timeZone);
  if (nextAt === null || "problem" in read) return [];
  return timesFrom(read.times, nextAt, limits.scheduleNextTimes);
}

/** Like a trigger. Where the Blueprint writes, it requires a second factor. Throws Problem 403, OperatorError. */
export async function runScheduleAs(
  services: Needs<"db" | "news" | "signing">,
  caller: Principal,
  id: string,
): Promise<{ id: string; run_key: string }> {
  const run = await runScheduleNow(services, id, actorOf(caller), ({ blueprint }) => {
    if (writesOf(blueprint).length > 0) requireFactor(caller, "lately");
  });
  services.news.notifyRunnable([run.accountId]);
  return { id: run.id, run_key: run.runKey };
}
