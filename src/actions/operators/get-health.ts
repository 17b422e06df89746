import { requireAccount } from "#actions/operator-error.ts";
import { readRunHealth, type RunHealth } from "#db/operators/operator-health.ts";
import { listBlueprintIds } from "#db/operators/operator-config.ts";
import type { Database } from "#db/connection/pool.ts";
import { notFound } from "#domain/problem.ts";

/** The newest runs that are counted: the answer takes as long with a million runs. */
const AMONG = 5_000;
const DAYS = 30;

const NONE = { runs: 0, completed: 0, failed: 0, cancelled: 0, p50_ms: null, p95_ms: null, records: 0 };

const show = (of: RunHealth) => ({
  runs: of.runs,
  completed: of.completed,
  failed: of.failed,
  cancelled: of.cancelled,
  p50_ms: of.p50Ms === null ? null : Math.round(of.p50Ms),
  p95_ms: of.p95Ms === null ? null : Math.round(of.p95Ms),
  records: of.records,
});

/** How the runs of a Blueprint went lately. Throws Problem 404, OperatorError. */
export async function getBlueprintHealth(
  db: Database,
  { account, name }: { readonly account: string; readonly name: string },
  query: { days?: number },
) {
  const [id] = await listBlueprintIds(db, [(await requireAccount(db, account)).id], name);
  if (id === undefined) throw notFound("Blueprint");
  const [total, ...days] = await readRunHealth(db, id, { days: query.days ?? DAYS, among: AMONG });
  return {
    ...(total ? show(total) : NONE),
    // The runs before are not counted.
    since: total?.runs === AMONG ? total.since.toISOString() : null,
    by_day: days.map((day) => ({ at: (day.at ?? day.since).toISOString(), ...show(day) })),
  };
}
