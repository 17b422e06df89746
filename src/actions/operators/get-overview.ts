import { accountIdsOf } from "#actions/operator-error.ts";
import { clockText, readClock } from "#db/connection/clock.ts";
import {
  countRunsOfHour,
  countWaitingForPeople,
  listFailingBlueprints,
  listFailingLogins,
  type HourOfRuns,
} from "#db/operators/operator-overview.ts";
import { countWaitingRuns } from "#db/operators/operator-system.ts";
import type { Database } from "#db/connection/pool.ts";
import { listProposals } from "#db/operators/proposals.ts";
import { limits } from "#domain/limits.ts";
import { isTerminal } from "#domain/run.ts";

const HOUR_MS = 3_600_000;
/** Maximum age of an hour's numbers: of the current hour, and of a past one with open runs. */
const FRESH_MS = { present: 5_000, past: 60_000 };
/** Failures considered, and rows per list. */
const LIST = { runs: 1_000, rows: 10 };

interface KeptHour {
  readonly counts: readonly HourOfRuns[];
  readonly readAtMs: number;
  /** All of its runs have ended, so its numbers are final. */
  readonly isOver: boolean;
}

/** Hours read from this database, by their accounts and start. Final ones are read only once. */
const kept = new WeakMap<Database, Map<string, KeptHour>>();
const KEPT_HOURS_MAX = 4 * 24 * 32;

async function readHour(
  db: Database,
  startMs: number,
  nowMs: number,
  limit: readonly string[] | null,
): Promise<readonly HourOfRuns[]> {
  const hours = kept.get(db) ?? new Map<string, KeptHour>();
  kept.set(db, hours);
  const name = `${limit?.join(",") ?? "all"}/${startMs}`;
  const known = hours.get(name);
  const isPresent = nowMs < startMs + HOUR_MS;
  const freshMs = isPresent ? FRESH_MS.present : FRESH_MS.past;
  if (known && (known.isOver || nowMs - known.readAtMs < freshMs)) return known.counts;
  const counts = await countRunsOfHour(db, startMs, limit);
  const isOver =
    nowMs > startMs + HOUR_MS + FRESH_MS.past && counts.every(({ status }) => isTerminal(status));
  if (hours.size >= KEPT_HOURS_MAX) hours.delete(hours.keys().next().value ?? "");
  hours.set(name, { counts, readAtMs: nowMs, isOver });
  return counts;
}

/** Statistics of the last hours, and items that need attention, of the accounts in `limited`. `hours`: full hours before the current one. */
export async function getOverview(db: Database, hours: number, limited: readonly string[] | null) {
  const limit = await accountIdsOf(db, undefined, limited);
  const nowMs = await readClock(db);
  const present = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const starts = Array.from({ length: hours + 1 }, (_, index) => present - (hours - index) * HOUR_MS);
  const counts: (readonly HourOfRuns[])[] = [];
  // Sequentially, so that a dashboard doesn't take the connections that runs need.
  for (const start of starts) counts.push(await readHour(db, start, nowMs, limit));
  const [waiting, logins, failures, people, proposals] = await Promise.all([
    countWaitingRuns(db, limit),
    listFailingLogins(db, limit, LIST.rows),
    listFailingBlueprints(db, starts[0] ?? present, limit, LIST),
    countWaitingForPeople(db, limit, limited === null),
    listProposals(
      db,
      { accountIds: limited, limit: limited, isWaiting: true },
      { after: null, rows: limits.pageItems },
    ),
  ]);
  return {
    now: clockText(nowMs),
    hours: starts.map((start, index) => ({ at: clockText(start), ...outcomesOf(counts[index] ?? []) })),
    durations: percentilesOf(counts.flat()),
    waiting: waiting.map(({ reason, runs, oldestAt }) => ({
      waits_for: reason,
      runs,
      oldest_at: oldestAt.toISOString(),
    })),
    failing_logins: logins.map((each) => ({ ...each })),
    failures: failures.map(({ lastRunId, ...each }) => ({ ...each, last_run_id: lastRunId })),
    needs_people: {
      reviews: people.reviews,
      writes: people.writes,
      locked_credentials: people.lockedCredentials,
      proposals: proposals.length,
      dead_webhooks: people.deadWebhooks,
    },
  };
}

function outcomesOf(counts: readonly HourOfRuns[]) {
  const outcomes = { completed: 0, failed: 0, cancelled: 0, queued: 0, running: 0 };
  for (const { status, runs } of counts) outcomes[status] += runs;
  return outcomes;
}

/** Durations of completed runs, accurate to 10 %. Null: there are none. */
function percentilesOf(counts: readonly HourOfRuns[]) {
  const completed = counts
    .filter((each) => each.status === "completed")
    .toSorted((a, b) => (a.duration ?? 0) - (b.duration ?? 0));
  const total = completed.reduce((sum, { runs }) => sum + runs, 0);
  const at = (share: number): number | null => {
    let seen = 0;
    for (const { duration, runs } of completed) {
      seen += runs;
      if (seen >= total * share) return Math.round(1.1 ** ((duration ?? 0) + 0.5));
    }
    return null;
  };
  return { runs: total, p50_ms: at(0.5), p90_ms: at(0.9), p99_ms: at(0.99) };
}
