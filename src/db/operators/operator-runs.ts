import type { PageRequest } from "#domain/page-cursor.ts";
import type { RunStatus } from "#domain/run.ts";
import { ANY_BROWSER } from "#db/runs/browser-line.ts";
import { RUN_WAITS, type RunWaits } from "#db/runs/group-limits.ts";
import { BROWSER_LINE } from "#db/runs/lines.ts";
import { CLOCK } from "#db/runs/polls.ts";
import type { Database } from "#db/connection/pool.ts";

/** Null: any. */
export interface RunFilter {
  readonly id: string | null;
  readonly runKey: string | null;
  readonly status: RunStatus | null;
  /** The step within the status. */
  readonly step: string | null;
  readonly accountIds: readonly string[] | null;
  /** By key, of any account. */
  readonly blueprintIds: readonly string[] | null;
  /** The beginning of the run's name. */
  readonly name: string | null;
  /** Each of them. */
  readonly metadata: readonly MetadataPair[];
  /** By id. */
  readonly among: readonly string[] | null;
  readonly failure: string | null;
  /** The reason of the failure, as `ERROR_PATTERN` writes it. */
  readonly error: string | null;
  readonly since: string | null;
  readonly until: string | null;
}

export interface MetadataPair {
  readonly name: string;
  readonly value: string;
}

export interface ListedRun {
  readonly id: string;
  readonly runKey: string;
  readonly account: string;
  /** Null: it only logs in. */
  readonly blueprint: string | null;
  readonly blueprintVersion: number | null;
  readonly name: Buffer | null;
  readonly status: RunStatus;
  readonly progressStep: string;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly errorKind: string | null;
  readonly errorDetail: string | null;
  readonly metadata: Buffer;
  readonly purgedAt: Date | null;
}

const LISTED = `run.id, run.run_key as "runKey", account.slug as account, blueprint.key as blueprint,
  run.blueprint_version as "blueprintVersion", run.name, run.status, run.progress_step as "progressStep",
  run.created_at as "createdAt", run.started_at as "startedAt", run.ended_at as "endedAt",
  run.error_kind as "errorKind", run.error_detail as "errorDetail", run.metadata, run.purged_at as "purgedAt"`;
const TABLES = `run join account on account.id = run.account_id left join blueprint on blueprint.id = run.blueprint_id`;

/** Why a run failed, with `#` for its numbers: the same for failures that differ only in a line, a status or an id. */
const ERROR_PATTERN = `left(regexp_replace(coalesce(run.error_detail, ''), '[0-9]+', '#', 'g'), 300)`;

export interface FailureGroup {
  readonly account: string;
  /** Null: a test login. */
  readonly blueprint: string | null;
  readonly failure: string;
  readonly pattern: string;
  readonly runs: number;
  readonly lastRunId: string;
  readonly lastDetail: string | null;
  readonly lastAt: Date;
  /** Its newest runs, and their metadata. */
  readonly runIds: readonly string[];
  readonly metadata: readonly Buffer[];
}

/** The failed runs among the newest `among` of them, by their reason, the most frequent first. */
export async function listFailureGroups(
  db: Database,
  filter: Pick<RunFilter, "accountIds" | "blueprintIds" | "since">,
  limits: { readonly among: number; readonly groups: number },
): Promise<readonly FailureGroup[]> {
  return await db.query<FailureGroup>(
    `with failed as (
       select run.id, account.slug as account, blueprint.key as blueprint, run.error_kind as failure, run.error_detail as detail,
         ${ERROR_PATTERN} as pattern, run.created_at as at, run.metadata
       from ${TABLES}
       where run.status = 'failed' and ($1::text[] is null or run.account_id = any($1))
         and ($2::timestamptz is null or run.created_at >= $2) and ($5::text[] is null or run.blueprint_id = any($5))
       order by run.created_at desc, run.id desc limit $3
     )
     select account, blueprint, failure, pattern, count(*)::int as runs, (array_agg(id order by at desc, id desc))[1] as "lastRunId",
       (array_agg(detail order by at desc, id desc))[1] as "lastDetail", max(at) as "lastAt",
       (array_agg(metadata order by at desc, id desc))[1:20] as metadata, (array_agg(id order by at desc, id desc))[1:20] as "runIds"
     from failed group by account, blueprint, failure, pattern
     order by runs desc, "lastAt" desc, "lastRunId" limit $4`,
    [filter.accountIds, filter.since, limits.among, limits.groups, filter.blueprintIds],
  );
}

/** Few runs: otherwise, old ones would be looked for among all, newest first. */
const OF_IDS = `with run as materialized (select * from run where id = any($18))`;

/** A page of runs, newest first. Not prepared by name, so that it is planned for the given filters, each of which has an index. */
export async function listRuns(
  db: Database,
  filter: RunFilter,
  { after, rows }: PageRequest,
): Promise<readonly ListedRun[]> {
  const [account, one] = [onlyOf(filter.accountIds), onlyOf(filter.blueprintIds)];
  const [pair = null, ...others] = filter.metadata.map(pairOf);
  const withPair = pair && (await findFewWith(db, pair));
  const name = filter.name === null ? null : Buffer.from(filter.name, "utf8");
  return await db.query<ListedRun>(
    `${filter.among === null ? "" : OF_IDS} select ${LISTED} from ${TABLES}
     where ($1::text is null or run.id = $1) and ($2::uuid is null or run.run_key = $2)
       and ($3::text is null or run.status = $3) and ($4::text is null or run.account_id = $4) and ($21::text[] is null or run.account_id = any($21))
       and ($5::text is null or run.blueprint_id = $5) and ($6::text[] is null or run.blueprint_id = any($6))
       and ($7::bytea is null or (run.name >= $7 and run.name < $8))
       and ($9::text is null or case when position($10::bytea in run.metadata) > 0
         then run_metadata_pairs(run.metadata) @> array[hashtextextended($9, 0)] else false end)
       and ($17::bytea[] is null or (select bool_and(position(hashed in run.metadata) > 0) from unnest($17) as hashed))
       and ($16::text[] is null or run.id = any($16)) and ($18::text[] is null or run.id = any($18))
       and ($19::text is null or run.error_kind = $19) and ($22::text is null or run.progress_step = $22)
       and ($20::text is null or run.status = 'failed' and ${ERROR_PATTERN} = $20)
       and ($11::timestamptz is null or run.created_at >= $11) and ($12::timestamptz is null or run.created_at < $12)
       and ($13::bigint is null or (run.created_at, run.id) < (timestamptz 'epoch' + $13 * interval '1 ms', $14))
     order by run.created_at desc, run.id desc limit $15`,
    [
      filter.id,
      filter.runKey,
      filter.status,
      account,
      one,
      one === null ? filter.blueprintIds : null,
      name,
      // The upper bound of a prefix, in the order of bytes.
      name && Buffer.concat([name, Buffer.from([0xff])]),
      pair?.text ?? null,
      pair && Buffer.from(pair.hashed, "utf8"),
      filter.since,
      filter.until,
      after?.atMs ?? null,
      after?.id ?? null,
      rows,
      withPair,
      others.length === 0 ? null : others.map(({ hashed }) => Buffer.from(hashed, "utf8")),
      filter.among,
      filter.failure,
      filter.error,
      account === null ? filter.accountIds : null,
      filter.step,
    ],
  );
}

/** A single one is compared by itself, so that an index also gives the order. */
const onlyOf = (ids: readonly string[] | null): string | null =>
  ids?.length === 1 ? (ids[0] ?? null) : null;

/** `hashed`: the value as written in the JSON text, where its quotes are unambiguous. `text`: the value as in the index. */
const pairOf = ({ name, value }: MetadataPair) => ({
  hashed: `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  text: `${name}=${JSON.stringify(value)}`,
});

/** If more runs than this have a metadata value, a scan through all runs meets them soon, unless all of them are old. */
const FEW = 500;
/** If this many of the newest runs have the value, a scan finds it often enough without a lookup. */
const NEWEST = 200;
const OFTEN = 10;

/**
 * The runs with a metadata value if they are few, else null. A separate query: without statistics the planner assumes one run in
 * two hundred, and would scan a million runs, newest first, for a few matches, or sort a million matches. For the same reason the
 * condition above is written so that it uses no index.
 */
async function findFewWith(db: Database, pair: ReturnType<typeof pairOf>): Promise<readonly string[] | null> {
  const newest = await db.query(
    `select 1 from (select metadata from run order by created_at desc, id desc limit $2) newest
     where position($1::bytea in metadata) > 0 limit $3`,
    [Buffer.from(pair.hashed, "utf8"), NEWEST, OFTEN],
  );
  if (newest.length === OFTEN) return null;
  const rows = await db.query<{ id: string }>(
    `select id from run
     where metadata <> '\\x7b7d' and run_metadata_pairs(metadata) @> array[hashtextextended($1, 0)] limit $2`,
    [pair.text, FEW + 1],
  );
  return rows.length > FEW ? null : rows.map(({ id }) => id);
}

export interface DetailedRun extends ListedRun, RunWaits {
  readonly accountId: string;
  readonly blueprintId: string | null;
  readonly apiKeyId: string | null;
  /** The email of the operator who started it by hand; null also for the command line. */
  readonly startedBy: string | null;
  /** The key of the schedule that began it, or its id. */
  readonly schedule: string | null;
  /** The run that it repeats, and those that repeat it, the newest first. */
  readonly againOf: string | null;
  readonly reruns: readonly string[];
  readonly ignoredKeys: Buffer;
  readonly purgeReason: "retention" | "operator" | null;
  readonly parkedAt: Date | null;
  /** Null also while its timeout is paused. */
  readonly deadlineAt: Date | null;
  /** When a worker first took it; null also if it can't be told. */
  readonly claimedAt: Date | null;
  /** When it polls a target again. */
  readonly wakesAt: Date | null;
  /** When it may begin, and when it fails unless it has; null: its caller did not ask. */
  readonly beginsAt: Date | null;
  readonly expiresAt: Date | null;
  readonly priority: number;
  /** Why it queues for a browser, if it does. */
  readonly browserWait: "missing" | "taken" | null;
  /** Lines of `domain/node-tally.ts`: those of its steps have the others. */
  readonly tally: Buffer | null;
  readonly retries: number;
  readonly lostLeases: number;
}

/**
 * For runs that were taken before this time was recorded: the first claim sets the deadline, and each pause postpones it by its length. Only the pauses of reviews are recorded, accurate
 * to a few milliseconds: a computed time long after the start shows that there were other pauses.
 */
const CLAIMED_AT = `coalesce(run.claimed_at, (select case when at <= latest + interval '1 second' then least(at, latest) end
  from (select coalesce(run.started_at, run.ended_at, app_now()) as latest,
    run.deadline_at - run.timeout_ms * interval '1 ms' - coalesce((select sum(decided_at - created_at) from review
      where review.run_id = run.id and (review.status = 'approved' or review.status = 'timed_out' and on_timeout = 'approve')),
      interval '0') as at) as claim))`;

export async function findDetailedRun(db: Database, id: string): Promise<DetailedRun | undefined> {
  const rows = await db.query<DetailedRun>(
    `select ${LISTED}, run.account_id as "accountId", run.blueprint_id as "blueprintId", run.api_key_id as "apiKeyId",
       (select email from operator where operator.id = run.operator_id) as "startedBy", run.again_of as "againOf",
       coalesce((select key from schedule where schedule.id = run.schedule_id), run.schedule_id) as schedule,
       array(select id from run later where later.again_of = run.id order by id desc limit 20) as "reruns",
       run.ignored_keys as "ignoredKeys", run.purge_reason as "purgeReason",
       case when run.line is null then run.parked_at end as "parkedAt",
       case when run.parked_at is null then run.deadline_at end as "deadlineAt", ${CLAIMED_AT} as "claimedAt",
       case when run.line = '${CLOCK}' and run.ended_at is null
         then (select min(wakes_at) from run_poll where run_poll.run_id = run.id) end as "wakesAt",
       case when run.line = '${BROWSER_LINE}' and run.parked_at is not null and run.ended_at is null
         then case when ${ANY_BROWSER} then 'taken' else 'missing' end end as "browserWait",
       case when run.claimed_at is null then run.not_before end as "beginsAt", run.expires_at as "expiresAt", run.priority,
       ${RUN_WAITS},
       run.retries, run.lost_leases as "lostLeases", run.tally
     from ${TABLES} where run.id = $1`,
    [id],
  );
  return rows[0];
}

export interface DetailedStep {
  readonly nodeId: string;
  readonly status: "started" | "done" | "failed";
  readonly attempts: number;
  /** The time of the first start, even if the node waited in between. */
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly outputKind: string | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
  readonly errorDetail: string | null;
  readonly log: Buffer | null;
  /** Lines of `domain/node-tally.ts`: nodes without entries that ended before it. */
  readonly tally: Buffer | null;
  /** For a loop: the number of its records, if known. */
  readonly turnsTotal: number | null;
}

/**
 * In the order in which they ended: a node ends before the nodes that need it begin. Its start is derived from its duration and
 * may not show that. Steps of a test login that end within a millisecond are in the order of their numbers.
 */
export async function listDetailedSteps(db: Database, runId: string): Promise<readonly DetailedStep[]> {
  return await db.query<DetailedStep>(
    `select step.node_id as "nodeId", step.status, attempts, least(step.started_at, asked.at, polled.at) as "startedAt",
       step.ended_at as "endedAt", output_kind as "outputKind", step.records_total as "recordsTotal",
       step.records_valid as "recordsValid", error_detail as "errorDetail", log, tally, turns_total::float8 as "turnsTotal"
     from run_step step
       cross join lateral (select min(created_at) as at from review
         where review.run_id = step.run_id and review.node_id = step.node_id) asked
       cross join lateral (select min(began_at) as at from run_poll
         where run_poll.run_id = step.run_id and run_poll.node_id = step.node_id) polled
     where step.run_id = $1
     order by step.ended_at nulls last, substring(step.node_id from '^login step (\\d+) ')::int nulls last,
       step.started_at, step.node_id`,
    [runId],
  );
}

/** The number of processed records of each loop of a run. */
export async function listStartedTurns(
  db: Database,
  runId: string,
): Promise<readonly { readonly nodeId: string; readonly turns: number }[]> {
  return await db.query(
    // Step by step, by the index, so that the number of stored iterations does not matter.
    `with recursive step (node_id) as (
       (select node_id from run_turn where run_id = $1 order by node_id limit 1)
       union all
       select (select node_id from run_turn where run_id = $1 and node_id > step.node_id order by node_id limit 1)
       from step where step.node_id is not null
     )
     select split_part(step.node_id, '.', 1) as "nodeId", max(last.ordinal)::int + 1 as turns
     from step cross join lateral (
       select ordinal from run_turn where run_id = $1 and node_id = step.node_id order by ordinal desc limit 1
     ) last
     group by 1`,
    [runId],
  );
}

/** The number of earlier runs from which the usual output of a step is computed. */
const USUAL_OF_RUNS = 20;

/** The median number of records of each node in the last completed runs of the Blueprint before this one; nodes without records are left out. */
export async function listUsualRecords(
  db: Database,
  runId: string,
): Promise<readonly { readonly nodeId: string; readonly records: number }[]> {
  return await db.query(
    `with earlier as (
       select other.id, other.status from run join run other on other.blueprint_id = run.blueprint_id
         and (other.created_at, other.id) < (run.created_at, run.id)
       where run.id = $1 order by other.created_at desc, other.id desc limit $2
     )
     select step.node_id as "nodeId", percentile_disc(0.5) within group (order by step.records_total)::float8 as records
     from earlier join run_step step on step.run_id = earlier.id
     where earlier.status = 'completed' and step.status = 'done' and step.records_total is not null
     group by step.node_id`,
    [runId, USUAL_OF_RUNS],
  );
}

/** Names and sizes; never the content. */
export async function listInputSizes(
  db: Database,
  runId: string,
): Promise<readonly { refKey: string; kind: string; filename: Buffer | null; sizeBytes: number }[]> {
  return await db.query(
    `select ref_key as "refKey", kind, filename, coalesce(octet_length(content), blob.size_bytes, 0)::float8 as "sizeBytes"
     from run_input left join blob on blob.key = run_input.blob_key where run_input.run_id = $1 order by ref_key`,
    [runId],
  );
}

interface CredentialOfRun {
  readonly slot: string;
  readonly credentialId: string;
  readonly strategyId: string;
  readonly strategyVersion: number;
  readonly name: string | null;
  readonly rejections: number;
  readonly lockedUntil: Date | null;
  readonly isDeleted: boolean;
}

export async function listCredentialsOfRun(db: Database, runId: string): Promise<readonly CredentialOfRun[]> {
  return await db.query<CredentialOfRun>(
    `select used.slot, used.credential_id as "credentialId", used.strategy_id as "strategyId",
       used.strategy_version as "strategyVersion", credential.name, coalesce(credential.login_rejections, 0) as rejections,
       case when credential.login_locked_until > app_now() then credential.login_locked_until end as "lockedUntil",
       credential.id is null as "isDeleted"
     from run_credential used left join credential on credential.id = used.credential_id
     where used.run_id = $1 order by used.slot`,
    [runId],
  );
}

export async function listResultSizes(
  db: Database,
  runId: string,
): Promise<readonly { key: string; totalRecords: number; jsonBytes: number }[]> {
  return await db.query(
    `select key, total_records::float8 as "totalRecords", json_bytes::float8 as "jsonBytes"
     from run_result where run_id = $1 order by ordinal`,
    [runId],
  );
}

export async function listReviewsOfRun(
  db: Database,
  runId: string,
): Promise<
  readonly { id: string; nodeId: string; status: string; createdAt: Date; decidedAt: Date | null }[]
> {
  return await db.query(
    `select id, node_id as "nodeId", status, created_at as "createdAt", decided_at as "decidedAt" from review where run_id = $1 order by created_at, id`,
    [runId],
  );
}
