// A program that is newer than the database: only what is meant to upgrade it does.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { dumpSchema } from "../../scripts/generate/schema-dump.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { runCommand } from "../service-process.ts";
import { empty, FIXTURES, thaw } from "../upgrade/frozen-database.ts";

const [OLDEST = ""] = readdirSync(FIXTURES).filter((name) => /^\d{4}$/.test(name));
const FOLDER = join(FIXTURES, OLDEST);

suite(`a database of migration ${OLDEST} under a newer program`, () => {
  let database: TestDatabase;
  let environment: Record<string, string>;
  let documents: string;
  const folder = mkdtempSync(join(tmpdir(), "latchkey-older-"));

  before(async () => {
    database = await createTestDatabase();
    await empty(database.db);
    await thaw(database.db, FOLDER);
    cpSync(join(FOLDER, "data"), join(folder, "data"), { recursive: true });
    environment = {
      DATABASE_URL: database.connectionString,
      LATCHKEY_DATA_DIR: join(folder, "data"),
      LATCHKEY_LOG_LEVEL: "error",
    };
    documents = join(folder, "account.yaml");
    writeFileSync(documents, "account: newcomer\n");
  });
  after(async () => {
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Its tables, and what was migrated. */
  const schema = async (): Promise<string> => {
    const applied = await database.db.query("select * from schema_migration order by version");
    const jobs = await database.db.query("select id from graphile_worker.migrations order by id");
    return JSON.stringify([await dumpSchema(database.db), applied, jobs]);
  };

  const COMMANDS: readonly (readonly string[])[] = [
    ["doctor"],
    ["doctor", "--deep"],
    ["plan", "-f", "documents"],
    ["apply", "-f", "documents"],
    ["runs", "list"],
    ["reviews", "list"],
    ["keys", "list"],
    ["operators", "list"],
    ["audit", "verify"],
    ["export", "-o", "exported"],
  ];
  for (const command of COMMANDS) {
    test(`\`latchkey ${command.join(" ")}\` refuses it, names the way on, and changes nothing`, async () => {
      const before = await schema();
      const places = new Map([
        ["documents", documents],
        ["exported", join(folder, "exported")],
      ]);
      const ran = await runCommand(
        command.map((word) => places.get(word) ?? word),
        environment,
      );
      assert.equal(ran.code, 1, ran.stderr);
      assert.match(
        ran.stdout + ran.stderr,
        /lacks \d+ migrations, starting with 0041_counted_sign_ins\.sql\. Back it up, then run `latchkey migrate`.*Nothing was changed/,
      );
      assert.equal(await schema(), before);
    });
  }

  test("`latchkey validate` needs no database, and looks at none", async () => {
    const before = await schema();
    const ran = await runCommand(["validate", "-f", documents], environment);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(await schema(), before);
  });

  test("`latchkey migrate --plan` lists what is missing; `latchkey migrate` does it, and then there is nothing", async () => {
    const before = await schema();
    const planned = await runCommand(["migrate", "--plan"], environment);
    assert.equal(planned.code, 3, planned.stderr);
    const [first] = planned.stdout.split("\n");
    assert.equal(first, "0041_counted_sign_ins.sql");
    assert.match(planned.stderr, /lacks these \d+ migrations\. Nothing was changed\./);
    assert.equal(await schema(), before);

    const migrated = await runCommand(["migrate"], environment);
    assert.equal(migrated.code, 0, migrated.stderr);
    const nothing = await runCommand(["migrate", "--plan"], environment);
    assert.deepEqual([nothing.code, nothing.stdout], [0, "The database is up to date\n"]);
    const listed = await runCommand(["runs", "list"], environment);
    assert.equal(listed.code, 0, listed.stderr);
  });

  test("a database without any table of ours is sent to `latchkey init`", async () => {
    await empty(database.db);
    const ran = await runCommand(["runs", "list"], environment);
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /has no Latchkey tables yet\. Run `latchkey init`/);
    assert.equal((await database.db.query("select 1 from pg_tables where schemaname = 'public'")).length, 0);
  });
});
