// docs/operate.md#without-a-stop: the database was migrated by the next version, and a process of this one is restarted before it is replaced.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { migrate } from "#db/connection/migrate.ts";
import { openCaller } from "../caller.ts";
import { install, type Installation } from "../service.ts";
import { MIGRATIONS } from "./frozen-database.ts";

const parent = mkdtempSync(join(tmpdir(), "latchkey-next-"));
after(() => rmSync(parent, { recursive: true, force: true }));

const own = readdirSync(MIGRATIONS)
  .filter((file) => /^\d{4}_/.test(file))
  .toSorted();
const numberOf = (file = ""): string => file.slice(0, 4);
const LAST = numberOf(own.at(-1));

/** The migrations of a next version: these, and those that are put beside them. */
function nextVersion(name: string): string {
  const folder = join(parent, name);
  cpSync(MIGRATIONS, folder, { recursive: true });
  return folder;
}

/** Migrates as the next version does, with one more migration. */
async function migrateFurther({ database }: Installation, folder: string, file: string, sql: string) {
  writeFileSync(join(folder, file), sql);
  assert.deepEqual(await migrate(database.db, folder), { applied: [file] });
}

const ACCOUNT = "account: acme\n";

test("a process of this version starts again on the schema of the next one that says it may, and on no other", async () => {
  await using installation = await install();
  const next = nextVersion("compatible");
  await installation.apply(ACCOUNT);
  const key = await installation.createKey("acme");
  const compatible = `-- compatible back to ${LAST}\ncreate table of_next_version (id int primary key);\n`;
  await migrateFurther(installation, next, "9001_next.sql", compatible);
  for (const LATCHKEY_MIGRATE of ["auto", "off"]) {
    const service = await installation.serve({ LATCHKEY_MIGRATE });
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    const read = await openCaller(service.url, key).get("/blueprints/none/schema");
    assert.equal(read.status, 404, read.text);
    await service.end();
  }
  const told =
    /"migrations":\["9001_next"\].*the database was migrated by a newer version, which allows this one to continue/;
  assert.match(installation.logs(), told);

  // Whatever reads or changes the whole installation is the newer version's: a backup would lack its tables.
  const refused = /The database is newer than this program: it has 9001_next/;
  for (const command of [["migrate"], ["doctor"], ["backup", join(parent, "backup")]]) {
    const ran = await installation.command(...command);
    assert.equal(ran.code, 1, ran.stdout);
    assert.match(ran.stdout + ran.stderr, refused);
  }

  await migrateFurther(
    installation,
    next,
    "9002_silent.sql",
    "create table of_a_later_one (id int primary key);\n",
  );
  await assert.rejects(installation.serve(), refused);
});

test("a migration that leaves this version behind refuses it, though later ones would not", async () => {
  await using installation = await install();
  const next = nextVersion("incompatible");
  await migrateFurther(installation, next, "9001_next.sql", "drop table if exists of_next_version;\n");
  await migrateFurther(
    installation,
    next,
    "9002_silent.sql",
    `-- compatible back to ${numberOf(own.at(-2))}\nselect 1;\n`,
  );
  await assert.rejects(installation.serve(), /The database is newer than this program: it has 9001_next/);
});
