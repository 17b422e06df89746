import { BROWSER_LINE, GOES_ON, STANDS_FOR } from "./lines.ts";
import type { Database } from "#db/connection/pool.ts";

/**
 * Calls as many of the runs that queue for a browser as there are free places, less those that were called already and that no worker
 * has taken yet. Returns the accounts whose runs may be admitted. Only workers with a browser take a called run (`admission.ts`).
 */
export async function callToBrowsers(db: Database, free: number): Promise<readonly string[]> {
  const rows = await db.query<{ accountId: string }>({
    name: "call_to_browsers",
    text: `with called as (
        select count(*) as runs from run
        where line = '${BROWSER_LINE}' and ended_at is null and parked_at is null and lease_owner is null
      ), next as (
        select first.id from called cross join lateral (
          select id from run where ${STANDS_FOR(`'${BROWSER_LINE}'`)} order by created_at, id
          limit greatest($1 - called.runs, 0) for no key update skip locked
        ) first
      )
      update run set ${GOES_ON} from next where run.id = next.id and run.parked_at is not null
      returning run.account_id as "accountId"`,
    values: [free],
  });
  return rows.map(({ accountId }) => accountId);
}

/** Notes how many browsers the worker may run at once, and in which network. */
export async function saveBrowsers(
  db: Database,
  workerId: string,
  { most, network }: { readonly most: number; readonly network: "host" | "own" },
): Promise<void> {
  await db.query(`update worker set browsers = $2, own_browser_networks = $3 where id = $1`, [
    workerId,
    most,
    network === "own",
  ]);
}

/** The runs that queue for a browser, and whether any worker has one. */
export async function countBrowserLine(
  db: Database,
): Promise<{ readonly runs: number; readonly isMissing: boolean }> {
  const rows = await db.query<{ runs: number; isMissing: boolean }>(
    `select (select count(*) from run where ${STANDS_FOR(`'${BROWSER_LINE}'`)})::int as runs, not ${ANY_BROWSER} as "isMissing"`,
  );
  return rows[0] ?? { runs: 0, isMissing: false };
}

/** Whether some worker has a browser. One that has not said yet may have one. */
export const ANY_BROWSER = `exists (select from worker where coalesce(browsers, 1) > 0)`;
