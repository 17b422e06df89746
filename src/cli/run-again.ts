import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addRunAgain(runs: Command, composition: Composition): void {
  runs
    .command("again")
    .description(
      "rerun an ended run with the same inputs, credentials, name and metadata, on the current version",
    )
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .option("--may-write", "allow the Blueprint to write to other systems again")
    .option("--json", "print {id, run_key, blueprint_version} as JSON")
    .addHelpText("after", "\nExample:\n  latchkey runs again run_0VbbSVh5… --may-write")
    .action(
      async (id: string, options: { mayWrite?: boolean; json?: boolean }) =>
        await again(composition, id, options),
    );
}

async function again(
  composition: Composition,
  reference: string,
  { mayWrite, json }: { mayWrite?: boolean; json?: boolean },
): Promise<void> {
  const [{ runAgain }, { sendRunChanges }] = await Promise.all([
    import("#actions/runs/run-again.ts"),
    import("#db/runs/run-notifier.ts"),
  ]);
  await composition.loadNodeTypes();
  const signing = openOwnSigning(composition);
  const blobs = await composition.openStore();
  const answer = await composition.withDatabase(async (db) => {
    const wish = { version: null, mayWrite: mayWrite === true };
    const by = { actor: { kind: "cli" } } as const;
    return await runAgain({ db, blobs, signing }, by, reference, wish, async (accountId, effect) => {
      const made = await db.transaction(effect);
      await sendRunChanges(db, "cli", { waiting: [accountId] });
      return made;
    });
  });
  if (json === true) return print(answer.body);
  const made = JSON.parse(answer.body) as { id: string; blueprint_version: number };
  print(`Started ${made.id} with version ${made.blueprint_version} of its Blueprint.`);
  print(`Follow it: latchkey runs watch ${made.id}`);
}
