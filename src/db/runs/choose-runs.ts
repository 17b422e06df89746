import type { Database } from "#db/connection/pool.ts";

/** A waiting run with one of its credentials, or with its group; `admission.ts` reads them. */
export interface Waiting {
  readonly id: string;
  /** -1: it reserves slots. 0: its review was decided, so it goes before all others except those. Then by priority. */
  readonly place: number;
  readonly at: Date;
  /** One of its credential slots; null: it has none. */
  readonly slot: string | null;
  /** A credential, or the name of its group, for which there is a row, too. */
  readonly credentialId: string | null;
  readonly strategyId: string | null;
  readonly strategyVersion: number | null;
  /** The current limit, whatever it was when the run was triggered; null: unlimited. */
  readonly concurrency: number | null;
}

const IN_PROGRESS = `run.account_id = $1 and run.admitted_at is not null and run.ended_at is null`;

/** How many runs of each of the account's credentials are in progress, and of each group of a Blueprint with `concurrency`. */
export const LOAD = `select used.credential_id, count(*)::int as count
    from run join run_credential used on used.run_id = run.id where ${IN_PROGRESS} group by used.credential_id
  union all select grouped.name, count(*)::int
    from run join run_group grouped on grouped.run_id = run.id where ${IN_PROGRESS} group by grouped.name`;

export function inTurn(waiting: readonly Waiting[]): readonly Waiting[] {
  return waiting.toSorted(
    (a, b) =>
      a.place - b.place || a.at.getTime() - b.at.getTime() || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
  );
}

interface Choice {
  readonly chosen: readonly string[];
  /** Runs that can't run, each with the busy credential that it waits for. */
  readonly blocked: ReadonlyMap<string, string>;
}

/**
 * Chooses in the given order; a run waits while one of its credentials is at its limit. Slots reserved by a waiting run count as taken for
 * all later ones.
 */
export async function chooseRuns(
  tx: Database,
  accountId: string,
  waiting: readonly Waiting[],
  wanted: number,
): Promise<Choice> {
  const load = new Map<string | null, number>();
  if (waiting.some(({ concurrency }) => concurrency !== null)) {
    const rows = await tx.query<{ credentialId: string; count: number }>({
      name: "count_credential_load",
      text: `select credential_id as "credentialId", count from (${LOAD}) as load`,
      values: [accountId],
    });
    for (const row of rows) load.set(row.credentialId, row.count);
  }
  const chosen: string[] = [];
  const blocked = new Map<string, string>();
  for (const [id, needs] of Map.groupBy(waiting, (run) => run.id)) {
    if (chosen.length >= wanted) break;
    const busy = needs.find(
      ({ credentialId, concurrency }) => concurrency !== null && (load.get(credentialId) ?? 0) >= concurrency,
    );
    const reserves = needs.some(({ place }) => place < 0);
    if (busy === undefined || reserves)
      for (const { credentialId } of needs) load.set(credentialId, (load.get(credentialId) ?? 0) + 1);
    if (busy?.credentialId) blocked.set(id, busy.credentialId);
    else chosen.push(id);
  }
  return { chosen, blocked };
}
