import type { RunStatus } from "#domain/run.ts";
import type { Database } from "./pool.ts";

/** What an operator looks for. null: whatever it is. */
export interface RunFilter {
  readonly accountId: string | null;
  readonly status: RunStatus | null;
  readonly blueprint: string | null;
  /** In the run's name, in whatever case. */
  readonly name: string | null;
  /** Each has this value. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
  readonly since: string | null;
  readonly until: string | null;
  /** The last run of the page before. */
  readonly after: string | null;
}

export interface ListedRun {
  readonly id: string;
  readonly account: string;
  readonly blueprint: string;
  readonly version: number;
  readonly name: string | null;
  readonly status: RunStatus;
  readonly step: string;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly errorKind: string | null;
  readonly purgedAt: Date | null;
  readonly purgeReason: "retention" | "operator" | null;
}

const LISTED_COLUMNS = `run.id, account.slug as account, blueprint.key as blueprint, run.blueprint_version as version,
  convert_from(run.name, 'UTF8') as name, run.status, run.progress_step as step, run.created_at as "createdAt",
  run.started_at as "startedAt", run.ended_at as "endedAt", run.error_kind as "errorKind", run.purged_at as "purgedAt",
  run.purge_reason as "purgeReason"`;

const LISTED_FROM = `run join account on account.id = run.account_id join blueprint on blueprint.id = run.blueprint_id`;

/** The youngest first. */
export async function listRuns(
  db: Database,
  filter: RunFilter,
  limit: number,
): Promise<readonly ListedRun[]> {
  return await db.query<ListedRun>(
    `select ${LISTED_COLUMNS} from ${LISTED_FROM}
     where ($1::text is null or run.account_id = $1) and ($2::text is null or run.status = $2)
       and ($3::text is null or blueprint.key = $3)
       and ($4::text is null or position(lower($4) in lower(convert_from(run.name, 'UTF8'))) > 0)
       and not exists (
         select from unnest($5::text[], $6::text[]) as wanted (name, value)
         where (convert_from(run.metadata, 'UTF8')::json ->> wanted.name) is distinct from wanted.value)
       and ($7::timestamptz is null or run.created_at >= $7) and ($8::timestamptz is null or run.created_at < $8)
       and ($9::text is null or (run.created_at, run.id) < (select created_at, id from run where id = $9))
     order by run.created_at desc, run.id desc limit $10`,
    [
      filter.accountId,
      filter.status,
      filter.blueprint,
      filter.name,
      filter.metadata.map(([name]) => name),
      filter.metadata.map(([, value]) => value),
      filter.since,
      filter.until,
      filter.after,
      limit,
    ],
  );
}

export interface ShownStep {
  readonly node: string;
  readonly status: "started" | "done" | "failed";
  readonly attempts: number;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly records: number | null;
  readonly valid: number | null;
  /** Redacted when it was written. */
  readonly error: string | null;
}

export interface ShownRun extends ListedRun {
  readonly runKey: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retries: number;
  readonly lostWorkers: number;
  readonly responseBytes: number | null;
  /** The operator's redacted story. */
  readonly error: string | null;
  readonly credentials: readonly string[];
  readonly results: readonly { readonly key: string; readonly records: number }[];
  readonly steps: readonly ShownStep[];
}

/** All that an operator may see of a run; no input and no record. */
export async function findShownRun(db: Database, id: string): Promise<ShownRun | undefined> {
  const rows = await db.query<Omit<ShownRun, "steps" | "results" | "metadata"> & { metadata: string }>(
    `select ${LISTED_COLUMNS}, run.run_key as "runKey", convert_from(run.metadata, 'UTF8') as metadata, run.retries,
       run.lost_leases as "lostWorkers", run.response_bytes as "responseBytes", run.error_detail as error,
       array(select credential_id from run_credential where run_id = run.id order by slot) as credentials
     from ${LISTED_FROM} where run.id = $1`,
    [id],
  );
  const run = rows[0];
  if (!run) return undefined;
  const results = await db.query<{ key: string; records: number }>(
    `select key, total_records as records from run_result where run_id = $1 order by ordinal`,
    [id],
  );
  const steps = await db.query<ShownStep>(
    `select node_id as node, status, attempts, started_at as "startedAt", ended_at as "endedAt",
       records_total as records, records_valid as valid, error_detail as error
     from run_step where run_id = $1 order by started_at, node_id`,
    [id],
  );
  return { ...run, metadata: JSON.parse(run.metadata) as Record<string, string>, results, steps };
}
