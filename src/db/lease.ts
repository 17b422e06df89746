import { grouped } from "./group.ts";
import type { Database } from "./pool.ts";

/** What a worker holds: every write with it is refused once another has taken the run over. */
export interface Lease {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
}

/** Of the run's own row: it is still this lease's. The one condition that every write of a worker carries. */
const heldBy = (owner: string, epoch: string): string =>
  `lease_owner = ${owner} and lease_epoch = ${epoch} and ended_at is null`;

/** `$1` is the run's id. */
export const HELD = heldBy("$2", "$3");

/** For other tables: the run is still this lease's, and stays so until the transaction ends. */
export const RUN_HELD = `exists (select 1 from run where id = $1 and ${HELD} for share)`;

/** `$1` to `$3`. */
export const leaseValues = (lease: Lease): [string, string, number] => [
  lease.runId,
  lease.owner,
  lease.epoch,
];

/** In a batch: the run's row is the one that `given` (run_id, owner, epoch) names, and still that lease's. */
export const GIVEN_HELD = `run.id = given.run_id and ${heldBy("given.owner", "given.epoch")}`;

/** For other tables: the rows of `given` whose runs are still their lease's, and stay so until the transaction ends. */
export const HELD_OF_GIVEN = `held as (
    select given.* from given join run on ${GIVEN_HELD} order by given.run_id for share of run)`;

interface LeasedCall {
  readonly lease: Lease;
}

/** `$1` to `$3`: `given (run_id, owner, epoch)`. */
export const leaseColumns = (calls: readonly LeasedCall[]): readonly (readonly unknown[])[] => [
  calls.map(({ lease }) => lease.runId),
  calls.map(({ lease }) => lease.owner),
  calls.map(({ lease }) => lease.epoch),
];

/**
 * Concurrent writes of this process under its leases as one statement, which gives the ids of the runs that were still held:
 * true for those calls, false for the others. One lost lease changes nothing for its neighbours. A run has one call at a time; the
 * calls are in the order of their runs, so that two batches never wait for each other.
 */
export function groupedUnderLease<Call extends LeasedCall>(
  together: (db: Database, calls: readonly Call[]) => Promise<readonly { readonly runId: string }[]>,
): (db: Database, call: Call) => Promise<boolean> {
  return grouped<Call, boolean>(async (db, calls) => {
    const ordered = calls.toSorted((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1));
    const held = new Set((await together(db, ordered)).map(({ runId }) => runId));
    return calls.map(({ lease }) => held.has(lease.runId));
  });
}
