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
  blob_key: ["text", ({ input }) => input.blobKey],
  filename: ["bytea", ({ input }) => bytes(input.filename)],
  content_type: ["bytea", ({ input }) => bytes(input.contentType)],
  size_bytes: ["bigint", ({ input }) => input.sizeBytes],
  sha256: ["bytea", ({ input }) => input.sha256],
};

const GIVEN = { ...RUN, ...RECORD };

/**
 * A single statement, so that the rows of a group cost one round trip. Keys are claimed in order (two groups must not wait for
 * each other), and only runs that have their key and all their credentials are created; of several runs with the same key, one.
 * The credentials are locked against a concurrent delete until the transaction ends. Returns the ids of the created runs.
 */
function insertRuns(inserts: readonly Insert[]): Statement {
  const credentials = inserts.flatMap(({ run }) => run.credentials.map((used) => ({ run, used })));
  const inputs = inserts.flatMap(({ run }) => run.inputs.map((input) => ({ run, input })));
  return {
    name: "insert_runs_with_keys",
    text: INSERT_RUNS,
    values: [...valuesOf(GIVEN, inserts), ...valuesOf(CREDENTIAL, credentials), ...valuesOf(INPUT, inputs)],
  };
}

const insertGrouped = insertedTogether(insertRuns, ({ run }) => run.id, "trigger.after_insert");

const FIRST_OF_CREDENTIAL = 1 + Object.keys(GIVEN).length;
const FIRST_OF_INPUT = FIRST_OF_CREDENTIAL + Object.keys(CREDENTIAL).length;

// The first line identifies it in pg_stat_activity, which truncates statements after 1,024 characters.
const INSERT_RUNS = `-- insert into run, insert into idempotency_key
  with given as (
    select * from ${given("given", GIVEN, 1)}
  ), needed as (
    select * from ${given("needed", CREDENTIAL, FIRST_OF_CREDENTIAL)}
  ), locked as (
    select account_id, id from credential where (account_id, id) in (select account_id, credential_id from needed) for key share
  ), ready as (
    ${oncePerKey(`where not exists (
      select from needed where needed.run_id = given.id
        and (needed.account_id, needed.credential_id) not in (select account_id, id from locked))`)}
  ), claimed as (
    ${claimKeys()}
  ), made as (
    insert into run (${namesOf(RUN)})
    select ${namesOf(RUN)}
    from ready where ${HAS_ITS_KEY}
    returning id
  ), used as (
    insert into run_credential (${namesOf(CREDENTIAL)})
    select needed.* from needed join made on made.id = needed.run_id
  ), input as (
    select input.* from ${given("input", INPUT, FIRST_OF_INPUT)}
    join made on made.id = input.run_id
  ), stored as (
    insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
    select blob_key, account_id, run_id, 'input', size_bytes, sha256 from input where blob_key is not null
  ), noted as (
    insert into account_usage_change (account_id, bytes)
    select account_id, sum(size_bytes) from input group by account_id having sum(size_bytes) > 0
  ), given_input as (
    insert into run_input (account_id, run_id, ref_key, kind, content, blob_key, filename, content_type)
    select account_id, run_id, ref_key, kind, content, blob_key, filename, content_type from input
  )
  select id from made`;
