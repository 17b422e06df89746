import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "#db/connection/pool.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import { createEmptyDatabase } from "../database.ts";
import { signingOf } from "../invariants.ts";
import type { Installation } from "../service.ts";
import { runCommand, type CommandResult } from "../service-process.ts";

/** A place for a restore: an empty database, and a data folder with the installation's keys and nothing else. */
export interface Elsewhere extends AsyncDisposable {
  readonly environment: Record<string, string>;
  readonly dataFolder: string;
  readonly database: { readonly db: Database };
  command(...arguments_: string[]): Promise<CommandResult>;
}

export async function openElsewhere(
  installation: Pick<Installation, "dataFolder" | "environment">,
  keys: readonly string[] = ["signing.key", "master.key"],
): Promise<Elsewhere> {
  const database = await createEmptyDatabase();
  const dataFolder = folderWithKeys(installation, keys);
  // What the test itself reads is verified as the service does it.
  guardRows(database.db, signingOf(installation), null);
  const environment = {
    ...installation.environment,
    DATABASE_URL: database.connectionString,
    LATCHKEY_DATA_DIR: dataFolder,
  };
  return {
    environment,
    dataFolder,
    database,
    command: async (...arguments_) => await runCommand(arguments_, environment),
    [Symbol.asyncDispose]: async () => {
      await database.drop();
      rmSync(dataFolder, { recursive: true, force: true });
    },
  };
}

export function folderWithKeys(
  { dataFolder: from }: Pick<Installation, "dataFolder">,
  keys: readonly string[],
): string {
  const dataFolder = mkdtempSync(join(tmpdir(), "latchkey-restored-"));
  for (const key of keys) copyFileSync(join(from, key), join(dataFolder, key));
  return dataFolder;
}

/** What the database has, table by table: rows as text in one order. */
export async function readAllRows(db: Database): Promise<ReadonlyMap<string, readonly string[]>> {
  const tables = await db.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  const all = new Map<string, readonly string[]>();
  for (const { name } of tables) {
    const rows = await db.query<{ line: string }>(`select t::text as line from public.${name} t order by 1`);
    all.set(
      name,
      rows.map(({ line }) => line),
    );
  }
  return all;
}

/** Rows that a restore adds: what it did is on record, which lengthens the chain of the installation. */
const GROWN = ["audit_entry", "audit_chain", "schema_migration"];

/** Every row of every table is there as it was, and no other. */
export async function assertSameRows(
  one: ReadonlyMap<string, readonly string[]>,
  restored: Database,
): Promise<void> {
  const other = await readAllRows(restored);
  assert.deepEqual([...other.keys()], [...one.keys()]);
  for (const [name, rows] of one) {
    if (!GROWN.includes(name)) assert.deepEqual(other.get(name), rows, name);
    else if (name === "audit_entry") {
      const found = new Set(other.get(name));
      assert.deepEqual(
        rows.filter((row) => !found.has(row)),
        [],
        name,
      );
    }
  }
  assert.ok((one.get("run") ?? []).length > 0, "there was something to compare");
}

/** Nothing of a refused restore is there. */
export async function assertUntouched({ database: { db }, dataFolder }: Elsewhere): Promise<void> {
  const tables = await db.query("select from pg_tables where schemaname in ('public', 'graphile_worker')");
  assert.equal(tables.length, 0, "the database has no table");
  assert.deepEqual(readdirSync(dataFolder).toSorted(), ["master.key", "signing.key"]);
}
