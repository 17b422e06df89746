// docs/decisions/0033: the version before this one goes on working while migrations are applied, and after them until its last process
// has ended. flow/rolling-upgrade has the two versions side by side under a load.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { migrate } from "#db/connection/migrate.ts";
import { createEmptyDatabase, type TestDatabase } from "../database.ts";
import { EARLIER } from "./earlier-build.ts";
import { empty, MIGRATIONS } from "./frozen-database.ts";
import { listChanges, type SchemaChange } from "./schema-changes.ts";

const FEW_ACCOUNTS = "an installation has few accounts";

/** What the version with EARLIER can live with, and why. A release empties it. */
const ACCEPTED: Readonly<Record<string, string>> = {
  "0089_device_sign_ins.sql: constraint operator_token.operator_token_acts_for_fkey is checked under a lock":
    "an installation has few tokens of operators",
  "0089_device_sign_ins.sql: index operator_token.operator_token_acts_for is built under a lock":
    "an installation has few tokens of operators",
  "0090_schedules_of_documents.sql: constraint schedule.schedule_paused_reason_check holds for new rows":
    "it allows one reason more, and refuses none of the ones before",
  "0090_schedules_of_documents.sql: constraint schedule.schedule_paused_reason_check is checked under a lock":
    "a row for each schedule: ten thousand are checked in milliseconds",
  "0090_schedules_of_documents.sql: constraint schedule_fire.schedule_fire_outcome_check holds for new rows":
    "it allows one outcome more, and refuses none of the ones before",
  "0090_schedules_of_documents.sql: constraint schedule_fire.schedule_fire_check holds for new rows":
    "as before for the outcomes that there were",
  "0090_schedules_of_documents.sql: index schedule.schedule_of_document is built under a lock":
    "no schedule is of a document before the migration, so it is empty",
  "0092_operators_of_accounts.sql: constraint operator.operator_account_ids_check is checked under a lock":
    "an installation has few operators",
  "0094_run_events_of_a_statement.sql: trigger run.run_event is dropped":
    "another one writes the same events from the same commit on",
  "0094_run_events_of_a_statement.sql: function note_run_event() is dropped": "only the trigger called it",
  "0096_operators_hear.sql: column webhook_event.account_id is no longer required":
    "only events for operators have none, and they are written once an operators' endpoint was made, by the new version",
  "0096_operators_hear.sql: column webhook_endpoint.account_id is no longer required":
    "only operators' endpoints have none, which the new version makes",
  "0096_operators_hear.sql: column webhook_secret.account_id is no longer required":
    "only operators' endpoints have none, which the new version makes",
  "0096_operators_hear.sql: constraint webhook_endpoint.webhook_endpoint_document_check holds for new rows":
    "it refuses only endpoints without an account, which the version before does not make",
  "0096_operators_hear.sql: constraint webhook_endpoint.webhook_endpoint_document_check is checked under a lock":
    "an installation has few endpoints",
  "0101_test_accounts.sql: key account.account_test_of_key is checked under a lock": FEW_ACCOUNTS,
  "0101_test_accounts.sql: constraint account.account_check1 holds for new rows":
    "only test accounts have `test_of`, which the new version makes",
  "0101_test_accounts.sql: constraint account.account_check1 is checked under a lock": FEW_ACCOUNTS,
  "0101_test_accounts.sql: constraint account.account_test_of_fkey is checked under a lock": FEW_ACCOUNTS,
  "0102_test_clock.sql: constraint account.account_check2 is checked under a lock": FEW_ACCOUNTS,
  "0104_schedule_jitter.sql: constraint schedule.schedule_jitter_check is checked under a lock":
    "a row for each schedule: ten thousand are checked in milliseconds",
};

const textOf = ({ file, object, change }: SchemaChange): string => `${file}: ${object} ${change}`;

let database: TestDatabase;
before(async () => {
  database = await createEmptyDatabase();
});
after(async () => await database?.drop());

async function changesOf(folder: string, earlier: string): Promise<readonly string[]> {
  await empty(database.db);
  return (await listChanges(database.db, folder, earlier)).map(textOf);
}

test("migrations take nothing from the version before, ask nothing new of it, and lock no table for long", async () => {
  const found = await changesOf(MIGRATIONS, EARLIER);
  assert.deepEqual(
    found.filter((text) => !(text in ACCEPTED)),
    [],
    "Expand now, and contract in a later release; or say in ACCEPTED why the version before can live with it.",
  );
  assert.deepEqual(
    Object.keys(ACCEPTED).filter((text) => !found.includes(text)),
    [],
  );
});

test("migrations say that the version before may go on, so that its processes can be restarted meanwhile", async () => {
  await empty(database.db);
  await migrate(database.db, MIGRATIONS);
  const silent = await database.db.query<{ name: string }>(
    `select name from schema_migration
     where name || '.sql' > $1 and version >= (select min(version) from schema_migration where compatible_back_to is not null)
       and compatible_back_to is distinct from substring($1 for 4)::int`,
    [EARLIER],
  );
  assert.deepEqual(silent, [], `Their first line must be: -- compatible back to ${EARLIER.slice(0, 4)}`);
});

const BEFORE = `
create table kept (id int primary key, word text, small int, needed text not null, free text, unique (word));
create index kept_small on kept (small);
create table left_over (id int);
create function asked() returns int language sql return 1;
create function noted() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger kept_noted after insert on kept for each row execute function noted();
`;

/** A migration, and what the version before notices of it. */
const NOTICED: Readonly<Record<string, readonly string[]>> = {
  "drop table left_over": ["table left_over is dropped"],
  "alter table kept drop column free": ["column kept.free is dropped"],
  "alter table kept rename column free to other": ["column kept.free is dropped"],
  "alter table kept alter column small type bigint": [
    "table kept is rewritten",
    "column kept.small has another type",
  ],
  "alter table kept alter column free set not null": ["column kept.free is required"],
  "alter table kept alter column needed drop not null": ["column kept.needed is no longer required"],
  "alter table kept add column more text not null": ["column kept.more is required"],
  "alter table kept drop constraint kept_word_key": ["key kept.kept_word_key is dropped"],
  "drop index kept_small": ["index kept.kept_small is dropped"],
  "drop function asked()": ["function asked() is dropped"],
  "drop trigger kept_noted on kept": ["trigger kept.kept_noted is dropped"],
  "create index kept_free on kept (free)": ["index kept.kept_free is built under a lock"],
  "alter table kept add constraint short check (length(free) < 9) not valid": [
    "constraint kept.short holds for new rows",
  ],
  "alter table kept add column more int check (more > 0)": [
    "constraint kept.kept_more_check is checked under a lock",
  ],
  // What it may do.
  "create index concurrently kept_free on kept (free)": [],
  "create table fresh (id int primary key, kept_id int references kept (id), word text not null)": [],
  "alter table kept add column more int not null default 1": [],
  "alter table kept add column more int, add constraint more_check check (more > 0) not valid": [],
};

test("what the version before would notice of a migration is told", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-migrations-"));
  const found: Record<string, readonly string[]> = {};
  writeFileSync(join(folder, "0001_before.sql"), BEFORE);
  for (const sql of Object.keys(NOTICED)) {
    writeFileSync(join(folder, "0002_after.sql"), `${sql};\n`);
    const changes = await changesOf(folder, "0001_before.sql");
    found[sql] = changes.map((text) => text.slice("0002_after.sql: ".length));
  }
  rmSync(folder, { recursive: true });
  assert.deepEqual(found, NOTICED);
});
