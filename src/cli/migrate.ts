import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";

/** As for `plan`, the exit code if there is something to do. */
const THERE_ARE_CHANGES = 3;

export function addMigrate(program: Command, composition: Composition): void {
  program
    .command("migrate")
    .description("migrate the database to this version, and grant the service's role its rights")
    .option("--plan", "list the missing migrations without running them (exit code 3: there are some)")
    .addHelpText(
      "after",
      "\n`init` does so too, and `serve` unless LATCHKEY_MIGRATE is off; no other command changes the schema. Back up the database first.\n\n" +
        "Examples:\n  latchkey migrate --plan\n  DATABASE_OWNER_URL=… latchkey migrate",
    )
    .action(async ({ plan }: { plan?: boolean }) => await (plan ? showPlan : migrate)(composition));
}

async function migrate(composition: Composition): Promise<void> {
  await composition.withDatabase(async () => print("The database is up to date"), { migrates: true });
}

async function showPlan(composition: Composition): Promise<void> {
  const pending = await composition.readMigrationPlan();
  if (pending.length === 0) return print("The database is up to date");
  for (const migration of pending) print(migration);
  throw new CommandFailed(
    `The database lacks ${pending.length === 1 ? "this migration" : `these ${pending.length} migrations`}. Nothing was changed.`,
    THERE_ARE_CHANGES,
  );
}
