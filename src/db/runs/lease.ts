import { grouped } from "#db/connection/group.ts";
import { given, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import type { Database, Statement } from "#db/connection/pool.ts";

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

interface LeasedCall {
  readonly lease: Lease;
}

const LEASE: Columns<LeasedCall> = {
  run_id: ["text", ({ lease }) => lease.runId],
  owner: ["text", ({ lease }) => lease.owner],
  epoch: ["int", ({ lease }) => lease.epoch],
};

/** A statement under leases. */
interface LeasedWrite<Call> {
  readonly name: string;
  /** How it locks the run's own row. */
  readonly locks: "share" | "no key update";
  /** Of a call, besides its lease. */
  readonly columns?: Columns<Call>;
  /**
   * What follows `held`, a common table expression: the calls' columns (and run_id, owner, epoch) whose runs still have these leases, and
   * keep them until the transaction ends. It returns the ids of the runs that it changed. Its own parameters begin at `$next`.
   */
  readonly write: (next: number, rare: string) => string;
  readonly values?: (calls: readonly Call[]) => readonly unknown[];
  /** A part for batches in which some call needs it: one that writes no rows still opens its table and all of its indexes. */
  readonly rare?: { readonly isNeeded: (call: Call) => boolean; readonly part: string };
}

/**
 * Concurrent writes of this process under its leases as one statement: true for the calls whose runs it changed, false for those whose
 * lease is lost. A lost lease does not affect other calls, and none waits for a run whose row is locked: that call is repeated alone and
 * waits. Each run has one call at a time; calls are in the order of their runs, so that batches never deadlock.
 */
export function groupedUnderLease<Call extends LeasedCall>({
  name,
  locks,
  columns = {},
  write,
  values = () => [],
  rare = { isNeeded: () => false, part: "" },
}: LeasedWrite<Call>): (db: Database, call: Call) => Promise<boolean> {
  const all: Columns<Call> = { ...LEASE, ...columns };
  const statement = (suffix: string, ifLocked: string, part: string): Statement => ({
    name: `${name}${suffix}`,
    text: `with given as (select * from ${given("given", all, 1)}), held as (
      select given.* from given join run on run.id = given.run_id and ${heldBy("given.owner", "given.epoch")}
      order by given.run_id for ${locks} of run${ifLocked})${write(Object.keys(all).length + 1, part)}`,
  });
  const forms = (suffix: string, ifLocked: string): Readonly<Record<"rare" | "plain", Statement>> => ({
    rare: statement(suffix, ifLocked, rare.part),
    plain: statement(`_plain${suffix}`, ifLocked, ""),
  });
  // A batch skips a row that another transaction locks, a single call waits for it.
  const [skipping, waiting] = [forms("", " skip locked"), forms("_alone", "")];
  const send = async (db: Database, calls: readonly Call[], form: typeof skipping): Promise<Set<string>> => {
    const changed = await db.query<{ runId: string }>({
      ...(calls.some(rare.isNeeded) ? form.rare : form.plain),
      values: [...valuesOf(all, calls), ...values(calls)],
    });
    return new Set(changed.map(({ runId }) => runId));
  };
  const alone = async (db: Database, call: Call): Promise<boolean> =>
    (await send(db, [call], waiting)).has(call.lease.runId);
  const together = grouped<Call, boolean>(
    async (db, calls) => {
      const ordered = calls.toSorted((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1));
      const changed = await send(db, ordered, skipping);
      return calls.map(({ lease }) => changed.has(lease.runId));
    },
    { alone, waitMaxMs: Infinity },
  );
  return async (db, call) => (await together(db, call)) || (await alone(db, call));
}
