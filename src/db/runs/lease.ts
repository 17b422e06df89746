import { grouped } from "#db/connection/group.ts";
import type { Database } from "#db/connection/pool.ts";

/** A worker's lease: every write with it is refused once another worker has taken over the run. */
export interface Lease {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
}

/** The condition in every write of a worker: the run's row still has this lease. */
const heldBy = (owner: string, epoch: string): string =>
  `lease_owner = ${owner} and lease_epoch = ${epoch} and ended_at is null`;

/** `$1` is the run's id. */
export const HELD = heldBy("$2", "$3");

/** For other tables: the run still has this lease, and keeps it until the transaction ends. */
export const RUN_HELD = `exists (select 1 from run where id = $1 and ${HELD} for share)`;

/** `$1` to `$3`. */
export const leaseValues = (lease: Lease): [string, string, number] => [
  lease.runId,
  lease.owner,
  lease.epoch,
];

/** For a row that another transaction locks: a batch skips it, a single call waits. */
type LockWait = "skip" | "wait";

/** A statement under leases, as a batch and as a single call. */
export type LeasedStatement = {
  readonly [form in LockWait]: { readonly name: string; readonly text: string };
};

/**
 * `write` can use `held`, a common table expression: the rows of `given` (run_id, owner, epoch) whose runs still have these
 * leases, and keep them until the transaction ends. `locks`: how the statement locks the run's own row.
 */
export function underLease(
  name: string,
  locks: "share" | "no key update",
  write: (held: string) => string,
): LeasedStatement {
  const held = (ifLocked: string): string => `held as (
    select given.* from given join run on run.id = given.run_id and ${heldBy("given.owner", "given.epoch")}
    order by given.run_id for ${locks} of run${ifLocked})`;
  return {
    skip: { name, text: write(held(" skip locked")) },
    wait: { name: `${name}_alone`, text: write(held("")) },
  };
}

interface LeasedCall {
  readonly lease: Lease;
}

/** `$1` to `$3`: `given (run_id, owner, epoch)`. */
const leaseColumns = (calls: readonly LeasedCall[]): readonly (readonly unknown[])[] => [
  calls.map(({ lease }) => lease.runId),
  calls.map(({ lease }) => lease.owner),
  calls.map(({ lease }) => lease.epoch),
];

/**
 * Concurrent writes of this process under its leases as one statement, which returns the ids of the runs that it changed: true
 * for those calls, false for those whose lease is lost. `values`: the parameters from `$4` on. A lost lease does not affect other
 * calls, and none waits for a run whose row is locked: that call is repeated alone and waits. Each run has one call at a time;
 * calls are in the order of their runs, so that batches never deadlock.
 */
export function groupedUnderLease<Call extends LeasedCall>(
  statement: LeasedStatement,
  values: (calls: readonly Call[]) => readonly unknown[],
): (db: Database, call: Call) => Promise<boolean> {
  const write = async (
    db: Database,
    calls: readonly Call[],
    form: LockWait,
  ): Promise<ReadonlySet<string>> => {
    const changed = await db.query<{ runId: string }>({
      ...statement[form],
      values: [...leaseColumns(calls), ...values(calls)],
    });
    return new Set(changed.map(({ runId }) => runId));
  };
  const alone = async (db: Database, call: Call): Promise<boolean> =>
    (await write(db, [call], "wait")).has(call.lease.runId);
  const together = grouped<Call, boolean>(
    async (db, calls) => {
      const ordered = calls.toSorted((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1));
      const changed = await write(db, ordered, "skip");
      return calls.map(({ lease }) => changed.has(lease.runId));
    },
    { alone, waitMaxMs: Infinity },
  );
  return async (db, call) => (await together(db, call)) || (await alone(db, call));
}
