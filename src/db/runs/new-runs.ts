import { failpoint } from "#lib/failpoint.ts";
import { grouped } from "#db/connection/group.ts";
import type { Database, Statement } from "#db/connection/pool.ts";

export interface NewRun {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
  /** Null: it only logs in, to see whether that works. */
  readonly blueprintId: string | null;
  readonly blueprintVersion: number | null;
  /** The run that it repeats. */
  readonly againOf: string | null;
  /** Who triggered it: an API key, or else an operator; the command line is neither. */
  readonly apiKeyId: string | null;
  readonly operatorId: string | null;
  readonly name: string | null;
  /** JSON text of name to string value. */
  readonly metadata: string;
  readonly ignoredKeys: readonly string[];
  readonly timeoutMs: number;
  readonly retentionMs: number;
  readonly credentials: readonly {
    readonly slot: string;
    readonly credentialId: string;
    readonly strategyId: string;
    readonly strategyVersion: number;
    readonly concurrency: number | null;
  }[];
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

/** A claim of an idempotency key together with the answer that it stands for. */
export interface KeyRecord {
  readonly keyHash: Buffer;
  readonly fingerprint: Buffer;
  readonly windowMs: number;
  readonly status: number;
  readonly body: string;
}

interface Insert {
  readonly run: NewRun;
  /** null: the caller sent no key, or has claimed it already. */
  readonly record: KeyRecord | null;
}

/** In a group, nobody waits for what one row waits for (another process's key, a credential that is being deleted). */
const GROUP_LOCK_TIMEOUT_MS = 100;
/** Runs with larger inputs go alone: their neighbours would wait for their bytes. */
const GROUP_INPUT_BYTES_MAX = 65_536;

/** The run and all that belongs to it, as part of the caller's transaction. False: one of its credentials is gone. */
export async function insertRun(tx: Database, run: NewRun): Promise<boolean> {
  return (await tx.query(insertRuns([{ run, record: null }]))).length > 0;
}

/**
 * The run, and the record of its key if it has one, with those of concurrent requests in one transaction; true after COMMIT.
 * False: nothing was written, because the key is taken, a credential is gone, something is locked, or a neighbour was bad. Then
 * the run must go alone, which tells what is the matter.
 */
export async function insertRunTogether(
  db: Database,
  run: NewRun,
  record: KeyRecord | null,
): Promise<boolean> {
  const inputBytes = run.inputs.reduce((sum, input) => sum + (input.content?.length ?? 0), 0);
  return inputBytes <= GROUP_INPUT_BYTES_MAX && (await insertGrouped(db, { run, record }));
}

const insertGrouped = grouped<Insert, boolean>(
  async (db, inserts) => {
    const rows = await db.transact<{ id: string }>(
      insertRuns(inserts),
      { lockTimeoutMs: GROUP_LOCK_TIMEOUT_MS },
      async (made) => await passFailpoints(inserts, idsOf(made)),
    );
    const made = idsOf(rows);
    return inserts.map(({ run }) => made.has(run.id));
  },
  { alone: async () => false },
);

const idsOf = (rows: readonly { readonly id: string }[]): ReadonlySet<string> =>
  new Set(rows.map(({ id }) => id));

async function passFailpoints(inserts: readonly Insert[], made: ReadonlySet<string>): Promise<void> {
  for (const { run, record } of inserts) {
    if (!made.has(run.id)) continue;
    await failpoint("trigger.after_insert");
    if (record === null) continue;
    await failpoint("idempotency.after_claim");
    await failpoint("idempotency.before_commit");
  }
}

/**
 * One statement, so that the rows of a group cost one round trip: keys are claimed in their order (two groups must not wait for
 * each other), and only what has its key and all its credentials is made: of several with one key, one. The credentials are locked against a concurrent
 * delete until the transaction ends. Gives the ids of the runs that were made.
 */
function insertRuns(inserts: readonly Insert[]): Statement {
  return {
    name: "insert_runs_with_keys",
    text: INSERT_RUNS,
    values: [
      ...runColumns(inserts),
      ...credentialColumns(inserts),
      ...inputColumns(inserts),
      inserts.map(({ run }) => run.operatorId),
      inserts.map(({ run }) => run.againOf),
    ],
  };
}

// Its first line is what pg_stat_activity shows of it: the view cuts statements off after 1,024 characters.
const INSERT_RUNS = `-- insert into run, insert into idempotency_key
  with given as (
    select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::int[], $6::text[], $7::bytea[], $8::bytea[],
      $9::bytea[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bigint[], $15::int[], $16::bytea[], $34::text[], $35::text[])
    as given(id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, name, metadata,
      ignored_keys, timeout_ms, retention_ms, key_hash, fingerprint, window_ms, status, body, operator_id, again_of)
  ), needed as (
    select * from unnest($17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::int[], $23::int[])
    as needed(account_id, run_id, slot, credential_id, strategy_id, strategy_version, concurrency)
  ), locked as (
    select account_id, id from credential where (account_id, id) in (select account_id, credential_id from needed) for key share
  ), ready as (
    select distinct on (account_id, key_hash, case when key_hash is null then id end) * from given where not exists (
      select from needed where needed.run_id = given.id
        and (needed.account_id, needed.credential_id) not in (select account_id, id from locked))
    order by account_id, key_hash, case when key_hash is null then id end, id
  ), claimed as (
    insert into idempotency_key (account_id, key_hash, fingerprint, expires_at, status, body)
    select account_id, key_hash, fingerprint, app_now() + window_ms * interval '1 ms', status, body from ready
    where key_hash is not null order by account_id, key_hash
    on conflict do nothing returning account_id, key_hash
  ), made as (
    insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, operator_id, name, metadata,
      ignored_keys, timeout_ms, retention_ms, again_of)
    select id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, operator_id, name, metadata,
      ignored_keys, timeout_ms, retention_ms, again_of
    from ready where key_hash is null or (account_id, key_hash) in (select account_id, key_hash from claimed)
    returning id
  ), used as (
    insert into run_credential (account_id, run_id, slot, credential_id, strategy_id, strategy_version, concurrency)
    select needed.* from needed join made on made.id = needed.run_id
  ), input as (
    select input.* from unnest($24::text[], $25::text[], $26::text[], $27::text[], $28::bytea[], $29::text[], $30::bytea[],
      $31::bytea[], $32::bigint[], $33::bytea[])
    as input(account_id, run_id, ref_key, kind, content, blob_key, filename, content_type, size_bytes, sha256)
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

const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, "utf8"));

function runColumns(inserts: readonly Insert[]): readonly (readonly unknown[])[] {
  const of = (value: (run: NewRun) => unknown): unknown[] => inserts.map(({ run }) => value(run));
  const ofRecord = (value: (record: KeyRecord) => unknown): unknown[] =>
    inserts.map(({ record }) => record && value(record));
  return [
    of((run) => run.id),
    of((run) => run.runKey),
    of((run) => run.accountId),
    of((run) => run.blueprintId),
    of((run) => run.blueprintVersion),
    of((run) => run.apiKeyId),
    of((run) => bytes(run.name)),
    of((run) => bytes(run.metadata)),
    of((run) => bytes(JSON.stringify(run.ignoredKeys))),
    of((run) => run.timeoutMs),
    of((run) => run.retentionMs),
    ofRecord((record) => record.keyHash),
    ofRecord((record) => record.fingerprint),
    ofRecord((record) => record.windowMs),
    ofRecord((record) => record.status),
    ofRecord((record) => bytes(record.body)),
  ];
}

function credentialColumns(inserts: readonly Insert[]): readonly (readonly unknown[])[] {
  const needed = inserts.flatMap(({ run }) => run.credentials.map((credential) => ({ run, ...credential })));
  return [
    needed.map(({ run }) => run.accountId),
    needed.map(({ run }) => run.id),
    needed.map(({ slot }) => slot),
    needed.map(({ credentialId }) => credentialId),
    needed.map(({ strategyId }) => strategyId),
    needed.map(({ strategyVersion }) => strategyVersion),
    needed.map(({ concurrency }) => concurrency),
  ];
}

function inputColumns(inserts: readonly Insert[]): readonly (readonly unknown[])[] {
  const given = inserts.flatMap(({ run }) => run.inputs.map((input) => ({ run, ...input })));
  return [
    given.map(({ run }) => run.accountId),
    given.map(({ run }) => run.id),
    given.map(({ refKey }) => refKey),
    given.map(({ kind }) => kind),
    given.map(({ content }) => content),
    given.map(({ blobKey }) => blobKey),
    given.map(({ filename }) => bytes(filename)),
    given.map(({ contentType }) => bytes(contentType)),
    given.map(({ sizeBytes }) => sizeBytes),
    given.map(({ sha256 }) => sha256),
  ];
}
