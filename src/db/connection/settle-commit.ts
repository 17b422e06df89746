import { setTimeout as sleep } from "node:timers/promises";

/** A transaction whose COMMIT may have to be settled. */
export interface BegunTransaction {
  readonly xid: string;
  /** `SERVER_LIFE` of the server that has given the id. */
  readonly serverLife: string;
}

/**
 * Changes whenever a server starts again, even if it only recovers from the crash of one of its processes, which discards its
 * statistics. An id whose transaction had not reached the log by then is given to another transaction, which may well commit.
 */
export const SERVER_LIFE = "concat(pg_postmaster_start_time(), ' ', (select stats_reset from pg_stat_wal))";

/** The server reports an error for an id that it has not issued yet. */
const STATUS = `select case when ${SERVER_LIFE} = $2 then pg_xact_status($1::text::xid8) else 'gone' end as status`;

const SETTLE_MS = 2_000;
const ASK_EVERY_MS = 50;

/**
 * Whether a transaction was committed whose connection broke during COMMIT (docs/decisions/0026). `ask` sends a statement on
 * another connection; undefined: none is available. False: it was rolled back, or the outcome can't be determined.
 */
export async function wasCommitted(
  ask: (text: string, values: readonly unknown[]) => Promise<Record<string, unknown> | undefined>,
  { xid, serverLife }: BegunTransaction,
): Promise<boolean> {
  const deadline = performance.now() + SETTLE_MS;
  while (performance.now() < deadline) {
    const status = (await ask(STATUS, [xid, serverLife]))?.["status"];
    if (status === "committed") return true;
    if (status === "aborted" || status === "gone") return false;
    await sleep(ASK_EVERY_MS);
  }
  return false;
}
