import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addStore(program: Command, composition: Composition): void {
  const store = program.command("store").description("the object store, with inputs and results");
  store
    .command("adopt")
    .description("after moving or copying the database: adopt the object store for this installation")
    .addHelpText(
      "after",
      "\nThe previous installation must not use it any more: each would delete the objects that only the other one's database names.",
    )
    .action(async () => {
      const signing = openOwnSigning(composition);
      const { adoptStore } = await import("#actions/upkeep/claim-store.ts");
      const blobs = await composition.openStore();
      const was = await composition.withDatabase(async (db) => await adoptStore({ db, blobs, signing }));
      print(
        was
          ? "The object store now belongs to this installation."
          : "The object store already belonged to this installation.",
      );
    });
  store
    .command("sweep")
    .description("remove all objects older than a day that no row of the database names")
    .action(async () => {
      const { sweepObjects } = await import("#actions/upkeep/sweep-objects.ts");
      const { openLog } = await import("#lib/log.ts");
      const blobs = await composition.openStore();
      const log = openLog({ level: "warn", format: "pretty" });
      const removed = await composition.withDatabase(
        async (db) => await sweepObjects({ db, blobs, log }, true),
      );
      if (removed === null) throw new CommandFailed("The sweep did not finish.");
      print(`${removed} objects were removed.`);
    });
}
