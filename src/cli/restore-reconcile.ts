import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addRestoreReconcile(program: Command, composition: Composition): void {
  program
    .command("restore-reconcile")
    .description(
      "after restoring an older backup, before serving: repeat the deletes since then, and accept the restored rows",
    )
    .option(
      "--tombstones <file...>",
      "tombstone files of all API machines, or audit exports (default: the one in the data folder)",
    )
    .option("--json", "print the counts as JSON")
    .addHelpText(
      "after",
      "\nExample:\n  latchkey restore-reconcile --tombstones api-1/tombstones.ndjson api-2/tombstones.ndjson",
    )
    .action(async (options: { tombstones?: string[]; json?: boolean }) => {
      const signing = openOwnSigning(composition);
      const files = options.tombstones ?? [join(composition.config().dataDir, "tombstones.ndjson")];
      for (const file of files) {
        if (existsSync(file)) continue;
        throw new CommandFailed(
          `There is no ${file}. Give the tombstone files of your API machines with --tombstones; nothing was changed.`,
        );
      }
      const { reconcileRestore } = await import("#actions/credentials/restore-reconcile.ts");
      const counts = await composition.withDatabase(async (db) => await reconcileRestore(db, signing, files));
      if (options.json) return print(JSON.stringify(counts));
      print(
        `${counts.tombstones} deleted credentials in the files; ${counts.deleted} had been restored and are deleted again.`,
      );
      if (counts.rows > 0)
        print(
          `${counts.rows} signed rows are older than in the audit log; they are accepted as they are ` +
            "(`row.sign` in the audit log names each).",
        );
      if (counts.unreadable > 0) print(`${counts.unreadable} lines could not be read.`);
    });
}
