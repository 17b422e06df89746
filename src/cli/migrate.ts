import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { print } from "./output.ts";

export function addMigrate(program: Command, composition: Composition): void {
  program
    .command("migrate")
    .description("bring the database to this version, and grant the service's role what it needs")
    .addHelpText(
      "after",
      "\nA start does so by itself unless LATCHKEY_MIGRATE is off.\n\nExample:\n  DATABASE_OWNER_URL=… latchkey migrate",
    )
    .action(async () => {
      await composition.withDatabase(async () => print("The database is up to date"), { migrates: true });
    });
}
