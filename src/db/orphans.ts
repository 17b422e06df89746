import type { Database } from "./connection/pool.ts";

/** An object without a row that is older than this is an orphan. By the database's clock. */
export async function readOrphanLimit(db: Database, ageMs: number): Promise<Date> {
  const rows = await db.query<{ at: Date }>(`select app_now() - $1::bigint * interval '1 ms' as at`, [ageMs]);
  return rows[0]?.at ?? new Date(0);
}

/** Returns those of these objects to which no row refers. */
export async function listUnnamedBlobs(db: Database, keys: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ key: string }>(
    `select stored.key from unnest($1::text[]) as stored (key)
     where not exists (select from blob where blob.key = stored.key)`,
    [keys],
  );
  return rows.map((row) => row.key);
}

/** One claim of a run; the next claim has another epoch. */
export interface RunClaim {
  readonly runId: string;
  readonly epoch: number;
}

/** Returns those of these claims that a worker still holds. */
export async function listHeldClaims(
  db: Database,
  claims: readonly RunClaim[],
): Promise<readonly RunClaim[]> {
  return await db.query<RunClaim>(
    `select run.id as "runId", run.lease_epoch as epoch
     from unnest($1::text[], $2::int[]) as claim (run_id, epoch)
       join run on run.id = claim.run_id and run.lease_epoch = claim.epoch
     where run.lease_owner is not null`,
    [claims.map((claim) => claim.runId), claims.map((claim) => claim.epoch)],
  );
}
