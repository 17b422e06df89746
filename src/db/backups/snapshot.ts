import pg from "pg";
import type { Database } from "#db/connection/pool.ts";
import { copied, listTables, SAME_FORMS, type CopiedTable } from "./tables.ts";
import { copyOut } from "./copy.ts";

/** Held, exclusively, while a backup is made, and shared by every purge: objects of purged runs would be missing in the backup. */
const LOCK_KEY = 7_203_155_420;
const LOCK_NOT_AVAILABLE = "55P03";
/** A purge of some hundred runs takes seconds. */
const PURGES_END_MS = 60_000;
/** Reads a table of millions. */
const COUNT_MS = 600_000;

/** Another backup is being made. */
export class BackupUnderWay extends Error {
  override readonly name = "BackupUnderWay";
}

/**
 * Keeps runs from being purged while `work` reads what belongs to them. Throws BackupUnderWay. Its transaction reads nothing, so it holds
 * nothing back.
 */
export async function withoutPurges<T>(db: Database, work: () => Promise<T>): Promise<T> {
  return await db.transaction(
    async (tx) => {
      await tx.query("set local statement_timeout to 0; set local idle_in_transaction_session_timeout to 0");
      try {
        await tx.query({
          text: "select pg_advisory_xact_lock($1)",
          values: [LOCK_KEY],
          timeoutMs: 2 * PURGES_END_MS,
        });
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== LOCK_NOT_AVAILABLE) throw error;
        throw new BackupUnderWay("another backup is being made", { cause: error });
      }
      return await work();
    },
    { lockTimeoutMs: PURGES_END_MS },
  );
}

/** In the transaction of a purge: whether it may purge. False: a backup is being made, or waits for purges to end. */
export async function mayPurge(tx: Database): Promise<boolean> {
  const [row] = await tx.query<{ may: boolean }>("select pg_try_advisory_xact_lock_shared($1) as may", [
    LOCK_KEY,
  ]);
  return row?.may === true;
}

/** What a backup has to say about its database. */
export interface SnapshotFacts {
  /** ISO 8601, by the database's clock: everything that was committed before is in it. */
  readonly takenAt: string;
  readonly migrations: readonly { readonly name: string; readonly sha256: string }[];
  /** The vault's keys, all of which are needed to open what is in it. */
  readonly kids: readonly string[];
  /** The fingerprint of the signing key, hexadecimal. */
  readonly signingKeyPrint: string;
  readonly tables: readonly CopiedTable[];
  /** The objects of all runs. */
  readonly objects: { readonly count: number; readonly bytes: number };
}

export interface Snapshot {
  readonly facts: SnapshotFacts;
  /** The rows of a table in COPY's text format. Ends with their number. To be read to its end. */
  readRows(table: CopiedTable): AsyncGenerator<Buffer, number>;
  /** The last values of the sequences, at least as high as in any row. */
  readSequences(): Promise<readonly { readonly name: string; readonly lastValue: string }[]>;
}

/** One moment of the database, for as long as `work` takes. Readers and writers continue. */
export async function withSnapshot<T>(db: Database, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const client = await db.pool.connect();
  let isWhole = false;
  try {
    await client.query("begin isolation level repeatable read read only");
    await client.query(SAME_FORMS);
    const facts = await readFacts(client);
    const done = await work({
      facts,
      readRows: (table) => copyOut(client, `copy ${copied(table)} to stdout`),
      readSequences: async () => await readSequences(client),
    });
    await client.query("commit");
    isWhole = true;
    return done;
  } finally {
    // After a failure it may be in the middle of a COPY.
    client.release(isWhole ? undefined : true);
  }
}

/** The first statement takes the snapshot. */
async function readFacts(client: pg.ClientBase): Promise<SnapshotFacts> {
  const { rows } = await client.query<{ takenAt: Date; print: Buffer | null }>(
    `select app_now() as "takenAt", (select signing_key_print from installation) as print`,
  );
  const [{ takenAt, print } = { takenAt: new Date(0), print: null }] = rows;
  const migrations = await client.query<{ name: string; sha256: string }>(
    "select name, sha256 from public.schema_migration order by version",
  );
  const keys = await client.query<{ kid: string }>("select kid from vault_key order by kid");
  const count = {
    text: "select count(*)::float8 as count, coalesce(sum(size_bytes), 0)::float8 as bytes from blob",
    query_timeout: COUNT_MS,
  };
  const objects = await client.query<SnapshotFacts["objects"]>(count);
  return {
    takenAt: takenAt.toISOString(),
    migrations: migrations.rows,
    kids: keys.rows.map(({ kid }) => kid),
    signingKeyPrint: print?.toString("hex") ?? "",
    tables: await listTables(client),
    objects: objects.rows[0] ?? { count: 0, bytes: 0 },
  };
}

async function readSequences(
  client: pg.ClientBase,
): Promise<readonly { readonly name: string; readonly lastValue: string }[]> {
  const { rows } = await client.query<{ name: string; lastValue: string }>(
    `select sequencename as name, last_value::text as "lastValue" from pg_sequences
     where schemaname = 'public' and last_value is not null order by 1`,
  );
  return rows;
}

/** The keys of all objects to which rows of a snapshot refer, and of a few newer ones. While nothing is purged. */
export async function* eachObjectKey(
  db: Database,
  takenAt: string,
  limit: number,
): AsyncGenerator<readonly string[]> {
  for (let after = ""; ;) {
    const rows: readonly { key: string }[] = await db.query<{ key: string }>(
      `select key from blob where key > $1 and created_at <= $2::timestamptz + interval '1 minute' order by key limit $3`,
      [after, takenAt, limit],
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(({ key }) => key);
    after = last.key;
  }
}
