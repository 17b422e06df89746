import type { Database } from "./connection/pool.ts";

/** Before this instant an object without a row is nobody's. By the database's clock. */
export async function readOrphanLimit(db: Database, ageMs: number): Promise<Date> {
  const rows = await db.query<{ at: Date }>(`select app_now() - $1::bigint * interval '1 ms' as at`, [ageMs]);
  return rows[0]?.at ?? new Date(0);
}

/** Of these objects, those that no row names. */
export async function listUnnamedBlobs(db: Database, keys: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ key: string }>(
    `select stored.key from unnest($1::text[]) as stored (key)
     where not exists (select from blob where blob.key = stored.key)`,
    [keys],
  );
  return rows.map((row) => row.key);
}

/** One claim of a run: the epoch is another at the next one. */
export interface RunClaim {
  readonly runId: string;
  readonly epoch: number;
}

/** Of these claims, those that a worker still holds. */
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
