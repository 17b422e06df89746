import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { onRemote } from "./remote.ts";
import { addLookAtRuns } from "./list-runs.ts";
import { addRunAgain } from "./run-again.ts";
import { addRunResults } from "./run-results.ts";

export function addRuns(program: Command, composition: Composition): void {
  const runs = program
    .command("runs")
    .description("list and show runs, export their results, rerun, cancel and purge them")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey runs list --account acme --status failed\n  latchkey runs results run_0VbbSVh5… --format csv",
    );
  addRunResults(runs, composition);
  addLookAtRuns(runs, composition);
  addRunAgain(runs, composition);
  runs
    .command("purge")
    .description("delete an ended run's inputs, results and step outputs now; its row stays")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .addHelpText("after", "\nExample:\n  latchkey runs purge run_0VbbSVh5…")
    .action(async (reference: string) => {
      if (composition.isRemote()) {
        const { purgeRun } = await import("#contract/operator/runs.ts");
        await onRemote(
          composition,
          async (service) => await service.call(purgeRun, { params: { runId: reference } }),
        );
        return print(`Purged ${reference}.`);
      }
      const { purgeRunAsOperator } = await import("#actions/runs/purge-runs.ts");
      const signing = openOwnSigning(composition);
      const blobs = await composition.openStore();
      const { id } = await composition.withDatabase(
        async (db) => await purgeRunAsOperator({ db, blobs, signing }, reference),
      );
      print(`Purged ${id}.`);
    });
  runs
    .command("cancel")
    .description("cancel a queued or running run of any account")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .addHelpText("after", "\nExample:\n  latchkey runs cancel run_0VbbSVh5…")
    .action(async (id: string) => {
      if (composition.isRemote()) {
        const { cancelRun } = await import("#contract/operator/runs.ts");
        await onRemote(
          composition,
          async (service) => await service.call(cancelRun, { params: { runId: id } }),
        );
        return print(`Cancelled ${id}.`);
      }
      const { cancelRunAsOperator } = await import("#actions/runs/cancel-run.ts");
      const signing = openOwnSigning(composition);
      const outcome = await composition.withDatabase(
        async (db) => await cancelRunAsOperator(db, signing, id),
      );
      if (outcome === "unknown") throw new CommandFailed(`There is no run ${id}.`);
      if (outcome !== "cancelled")
        throw new CommandFailed(`The run is already ${outcome.was}; nothing was changed.`);
      print(`Cancelled ${id}.`);
    });
}
