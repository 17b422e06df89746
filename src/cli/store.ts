import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addStore(program: Command, composition: Composition): void {
  const store = program.command("store").description("the object store, with inputs and results");
  store
    .command("adopt")
    .description("after moving or copying the database: make the object store this installation's")
    .addHelpText(
      "after",
      "\nThe installation that had it must not use it any more: each would delete what only the other one's database names.",
    )
    .action(async () => {
      const signing = openOwnSigning(composition);
      const { adoptStore } = await import("#actions/upkeep/claim-store.ts");
      const blobs = await composition.openStore();
      const was = await composition.withDatabase(async (db) => await adoptStore({ db, blobs, signing }));
      print(
        was
          ? "The object store is this installation's now."
          : "The object store was this installation's already.",
      );
    });
  store
    .command("sweep")
    .description(
      "remove the objects that no row of the database names, older than a day, however many they are",
    )
    .action(async () => {
      const { sweepObjects } = await import("#actions/upkeep/sweep-objects.ts");
      const { openLog } = await import("#lib/log.ts");
      const blobs = await composition.openStore();
      const log = openLog({ level: "warn", format: "pretty" });
      const removed = await composition.withDatabase(
        async (db) => await sweepObjects({ db, blobs, log }, true),
      );
      if (removed === null) throw new CommandFailed("The sweep was not carried out to its end.");
      print(`${removed} objects were removed.`);
    });
}
