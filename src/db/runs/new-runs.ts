import { given, namesOf, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import type { Database, Statement } from "#db/connection/pool.ts";
import {
  claimKeys,
  HAS_ITS_KEY,
  insertedTogether,
  oncePerKey,
  RECORD,
  type KeyedInsert,
  type KeyRecord,
} from "#db/keyed-inserts.ts";
import type { QueueOptions } from "#domain/queue-options.ts";
import { DELAY } from "./run-timers.ts";
import type { RunCredential } from "./runs.ts";

export interface NewRun {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
  /** null: a test login. */
  readonly blueprintId: string | null;
  readonly blueprintVersion: number | null;
  /** The run that it reruns. */
  readonly againOf: string | null;
  /** The API key or the operator that triggered it; both null: the command line. */
  readonly apiKeyId: string | null;
  readonly operatorId: string | null;
  readonly name: string | null;
  /** JSON text of name to string value. */
  readonly metadata: string;
  readonly ignoredKeys: readonly string[];
  readonly timeoutMs: number;
  readonly retentionMs: number;
  /** null: the run may begin at once, in its turn. */
  readonly queue: QueueOptions | null;
  /** Its group in `run_group`; null: its Blueprint has no `concurrency`. */
  readonly group: string | null;
  /** The trace of its trigger; null: none is known. */
  readonly traceparent: string | null;
  /** The schedule that began it. */
  readonly scheduleId: string | null;
  readonly credentials: readonly (RunCredential & { readonly concurrency: number | null })[];
  readonly inputs: readonly NewRunInput[];
}

export interface NewRunInput {
  readonly refKey: string;
  readonly kind: "text" | "json" | "file";
  readonly content: Buffer | null;
  readonly blobKey: string | null;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly sizeBytes: number;
  readonly sha256: Uint8Array | null;
}

interface Insert extends KeyedInsert {
  readonly run: NewRun;
}

/** Runs with larger inputs are inserted alone: others would wait for their bytes. */
const GROUP_INPUT_BYTES_MAX = 65_536;

/** Inserts the run and its rows, as part of the caller's transaction. False: one of its credentials was deleted. */
export async function insertRun(tx: Database, run: NewRun): Promise<boolean> {
  return (await tx.query(insertRuns([{ run, record: null }]))).length > 0;
}

/** As `insertedTogether`. False also when a credential was deleted. */
export async function insertRunTogether(
  db: Database,
  run: NewRun,
  record: KeyRecord | null,
): Promise<boolean> {
  const inputBytes = run.inputs.reduce((sum, input) => sum + (input.content?.length ?? 0), 0);
  return inputBytes <= GROUP_INPUT_BYTES_MAX && (await insertGrouped(db, { run, record }));
}

interface NewCredential {
  readonly run: NewRun;
  readonly used: NewRun["credentials"][number];
}

interface NewInput {
  readonly run: NewRun;
  readonly input: NewRunInput;
}

const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, "utf8"));

const RUN: Columns<Insert> = {
  id: ["text", ({ run }) => run.id],
  run_key: ["uuid", ({ run }) => run.runKey],
  account_id: ["text", ({ run }) => run.accountId],
  blueprint_id: ["text", ({ run }) => run.blueprintId],
  blueprint_version: ["int", ({ run }) => run.blueprintVersion],
  api_key_id: ["text", ({ run }) => run.apiKeyId],
  operator_id: ["text", ({ run }) => run.operatorId],
  name: ["bytea", ({ run }) => bytes(run.name)],
  metadata: ["bytea", ({ run }) => bytes(run.metadata)],
  ignored_keys: ["bytea", ({ run }) => bytes(JSON.stringify(run.ignoredKeys))],
  timeout_ms: ["bigint", ({ run }) => run.timeoutMs],
  retention_ms: ["bigint", ({ run }) => run.retentionMs],
  again_of: ["text", ({ run }) => run.againOf],
};

const QUEUE: Columns<Insert> = {
  priority: ["smallint", ({ run }) => run.queue?.priority ?? 0],
  delay_ms: ["bigint", ({ run }) => run.queue?.delayMs ?? null],
  expires_in_ms: ["bigint", ({ run }) => run.queue?.expiresInMs ?? null],
  schedule_id: ["text", ({ run }) => run.scheduleId],
  group_name: ["text", ({ run }) => run.group],
  traceparent: ["text", ({ run }) => run.traceparent],
};

const CREDENTIAL: Columns<NewCredential> = {
  account_id: ["text", ({ run }) => run.accountId],
  run_id: ["text", ({ run }) => run.id],
  slot: ["text", ({ used }) => used.slot],
  credential_id: ["text", ({ used }) => used.credentialId],
  strategy_id: ["text", ({ used }) => used.strategyId],
  strategy_version: ["int", ({ used }) => used.strategyVersion],
  concurrency: ["int", ({ used }) => used.concurrency],
};

const INPUT: Columns<NewInput> = {
  account_id: ["text", ({ run }) => run.accountId],
  run_id: ["text", ({ run }) => run.id],
  ref_key: ["text", ({ input }) => input.refKey],
  kind: ["text", ({ input }) => input.kind],
  content: ["bytea", ({ input }) => input.content],
  size_bytes: ["bigint", ({ input }) => input.sizeBytes],
};

const FILE_INPUT: Columns<NewInput> = {
  ...INPUT,
  blob_key: ["text", ({ input }) => input.blobKey],
  filename: ["bytea", ({ input }) => bytes(input.filename)],
  content_type: ["bytea", ({ input }) => bytes(input.contentType)],
  sha256: ["bytea", ({ input }) => input.sha256],
};

/** What some run of a group has. */
interface Shape {
  readonly keys: boolean;
  readonly credentials: boolean;
  readonly files: boolean;
  readonly queue: boolean;
}

/**
 * A single statement, so that the rows of a group cost one round trip. Keys are claimed in order (two groups must not wait for
 * each other), and only runs that have their key and all their credentials are created; of several runs with the same key, one.
 * The credentials are locked against a concurrent delete until the transaction ends. Returns the ids of the created runs.
 */
function insertRuns(inserts: readonly Insert[]): Statement {
  const credentials = inserts.flatMap(({ run }) => run.credentials.map((used) => ({ run, used })));
  const inputs = inserts.flatMap(({ run }) => run.inputs.map((input) => ({ run, input })));
  const shape = {
    keys: inserts.some(({ record }) => record !== null),
    credentials: credentials.length > 0,
    files: inputs.some(({ input }) => input.kind === "file"),
    queue: inserts.some(({ run }) =>
      [run.queue, run.scheduleId, run.group, run.traceparent].some((part) => part !== null),
    ),
  };
  const { name, text, given: columns, input } = statementOf(shape);
  return {
    name,
    text,
    values: [
      ...valuesOf(columns, inserts),
      ...valuesOf(input, inputs),
      ...(shape.credentials ? valuesOf(CREDENTIAL, credentials) : []),
    ],
  };
}

const insertGrouped = insertedTogether(insertRuns, ({ run }) => run.id, "trigger.after_insert");

const after = (ms: string): string => `app_now() + ${ms} * interval '1 ms'`;

/** What triggers rarely have. A delayed run is parked in a line of its own until its timer is due. */
const QUEUED = `, priority, case when delay_ms is not null then '${DELAY}' end, case when delay_ms is not null then app_now() end,
      ${after("delay_ms")}, ${after("expires_in_ms")}, schedule_id`;

const statements = new Map<string, ReturnType<typeof makeStatement>>();

function statementOf(shape: Shape): ReturnType<typeof makeStatement> {
  const { keys, credentials, files, queue } = shape;
  const name = `insert_runs${only(keys, "_with_keys")}${only(credentials, "_and_credentials")}${only(files, "_and_files")}${only(queue, "_and_queue")}`;
  const made = statements.get(name) ?? makeStatement(name, shape);
  statements.set(name, made);
  return made;
}

const only = (isNeeded: boolean, sql: string): string => (isNeeded ? sql : "");

/**
 * A statement has the parts that its group needs: most groups have neither credentials nor files, and two parts that write no rows
 * cost as much as a run.
 */
function makeStatement(name: string, { keys, credentials, files, queue }: Shape) {
  const columns: Columns<Insert> = { ...RUN, ...(queue ? QUEUE : {}), ...(keys ? RECORD : {}) };
  const input = files ? FILE_INPUT : INPUT;
  const stored = `account_id, run_id, ref_key, kind, content${only(files, ", blob_key, filename, content_type")}`;
  const firstOfInput = 1 + Object.keys(columns).length;
  const firstOfCredential = firstOfInput + Object.keys(input).length;
  const isReady = only(
    credentials,
    `where not exists (select from needed where needed.run_id = given.id
      and (needed.account_id, needed.credential_id) not in (select account_id, id from locked))`,
  );
  const locked = `, needed as (
    select * from ${given("needed", CREDENTIAL, firstOfCredential)}
  ), locked as (
    select account_id, id from credential where (account_id, id) in (select account_id, credential_id from needed) for key share
  )`;
  const used = `, used as (
    insert into run_credential (${namesOf(CREDENTIAL)})
    select needed.* from needed join made on made.id = needed.run_id
  )`;
  const blobs = `, stored as (
    insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
    select blob_key, account_id, run_id, 'input', size_bytes, sha256 from input where blob_key is not null
  )`;
  const timers = `, timed as (
    insert into run_timer (run_id, kind, at)
    select given.id, timer.kind, ${after("timer.ms")} from given join made on made.id = given.id
    cross join lateral (values ('begin', delay_ms), ('expire', expires_in_ms)) as timer (kind, ms) where timer.ms is not null
  ), grouped as (
    insert into run_group (run_id, account_id, blueprint_id, name)
    select given.id, given.account_id, given.blueprint_id, given.group_name from given join made on made.id = given.id
    where given.group_name is not null
  ), traced as (
    insert into run_trace (run_id, traceparent)
    select given.id, given.traceparent from given join made on made.id = given.id where given.traceparent is not null
  )`;
  // The first line identifies it in pg_stat_activity, which truncates statements after 1,024 characters.
  const text = `-- insert into run${only(keys, ", insert into idempotency_key")}
  with given as (
    select * from ${given("given", columns, 1)}
  )${only(credentials, locked)}, ready as (
    ${keys ? oncePerKey(isReady) : `select * from given ${isReady}`}
  )${only(keys, `, claimed as (${claimKeys()})`)}, made as (
    insert into run (${namesOf(RUN)}${only(queue, ", priority, line, parked_at, not_before, expires_at, schedule_id")})
    select ${namesOf(RUN)}${only(queue, QUEUED)}
    from ready ${only(keys, `where ${HAS_ITS_KEY}`)}
    returning id
  )${only(credentials, used)}, input as (
    select input.* from ${given("input", input, firstOfInput)}
    join made on made.id = input.run_id
  )${only(files, blobs)}${only(queue, timers)}, noted as (
    insert into account_usage_change (account_id, bytes)
    select account_id, sum(size_bytes) from input group by account_id having sum(size_bytes) > 0
  ), given_input as (
    insert into run_input (${stored}) select ${stored} from input
  )
  select id from made`;
  return { name, text, given: columns, input };
}
