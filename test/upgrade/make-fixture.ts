/**
 * Freezes an installation of the present program for `upgrade.pg.test.ts`: a release is preceded by
 *
 *     node_modules/.bin/node test/upgrade/make-fixture.ts
 *
 * It makes `test/fixtures/upgrade/<number of the last migration>/`. A fixture that was released is never made anew: it is what
 * people have.
 */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrateJobs } from "#db/runs/jobs.ts";
import { migrate, readMigrations } from "#db/connection/migrate.ts";
import { openPool } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";
import { createTestDatabase } from "../database.ts";
import { assertInvariants } from "../invariants.ts";
import { PRESENT } from "./documents.ts";
import { empty, FIXTURES, freezeRows, MIGRATIONS, recordSchema, thaw } from "./frozen-database.ts";
import { live } from "./live.ts";

await make();

async function make(): Promise<void> {
  const { version } = must((await readMigrations(MIGRATIONS)).at(-1), "a migration");
  const number = String(version).padStart(4, "0");
  const folder = join(FIXTURES, number);
  if (existsSync(folder))
    throw new Error(`${folder} is there already. Remove it first, unless it was released.`);
  mkdirSync(folder, { recursive: true });
  try {
    await using installation = await live();
    await assertInvariants(installation);
    const { db } = installation.database;
    // It would say on which machine this was.
    await db.query("update worker set hostname = 'fixture'");
    const [now] = await db.query<{ at: string }>("select app_now()::text as at");
    await freezeSchema(folder);
    await freezeRows(db, folder);
    cpSync(installation.dataFolder, join(folder, "data"), {
      recursive: true,
      filter: (path) => !path.endsWith("/scratch"),
    });
    writeFileSync(join(folder, "documents.yaml"), `${PRESENT.join("\n---\n")}\n`);
    const expected = { at: new Date(must(now, "a row").at).toISOString(), ...installation.expected };
    writeFileSync(join(folder, "expected.json"), `${JSON.stringify(expected, null, 2)}\n`);
    await proveThaw(folder);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  console.log(`Made ${folder}`);
}

async function freezeSchema(folder: string): Promise<void> {
  const { db, connectionString, drop } = await createTestDatabase();
  try {
    await empty(db);
    const recorded = openPool({ connectionString }, { applicationName: "latchkey-test", max: 1 });
    const schema = await recordSchema(recorded, async () => {
      await migrate(recorded, MIGRATIONS);
      await migrateJobs(recorded);
    });
    await recorded.end();
    writeFileSync(join(folder, "schema.sql"), schema);
  } finally {
    await drop();
  }
}

/** What is made anew from the fixture is frozen to the same files. */
async function proveThaw(folder: string): Promise<void> {
  const { db, drop } = await createTestDatabase();
  const again = mkdtempSync(join(tmpdir(), "latchkey-thawed-"));
  try {
    await empty(db);
    await thaw(db, folder);
    await freezeRows(db, again);
    for (const part of ["sequences.json", ...readdirSync(join(folder, "rows")).map((file) => `rows/${file}`)])
      assert.equal(readFileSync(join(again, part), "utf8"), readFileSync(join(folder, part), "utf8"), part);
  } finally {
    await drop();
    rmSync(again, { recursive: true, force: true });
  }
}
