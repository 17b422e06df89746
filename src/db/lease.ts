/** What a worker holds: every write with it is refused once another has taken the run over. */
export interface Lease {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
}

/** Of the run's own row; `$1` is its id. */
export const HELD = `lease_owner = $2 and lease_epoch = $3 and ended_at is null`;

/** For other tables: the run is still this lease's, and stays so until the transaction ends. */
export const RUN_HELD = `exists (select 1 from run where id = $1 and ${HELD} for share)`;

/** `$1` to `$3`. */
export const leaseValues = (lease: Lease): [string, string, number] => [
  lease.runId,
  lease.owner,
  lease.epoch,
];
