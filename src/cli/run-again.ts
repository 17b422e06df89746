import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { onRemote } from "./remote.ts";

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
  const answer = composition.isRemote()
    ? await againRemotely(composition, reference, mayWrite === true)
    : await againHere(composition, reference, mayWrite === true);
  if (json === true) return print(answer);
  const made = JSON.parse(answer) as { id: string; blueprint_version: number };
  print(`Started ${made.id} with version ${made.blueprint_version} of its Blueprint.`);
  print(`Follow it: latchkey runs watch ${made.id}`);
}

/** The new run, as JSON. */
async function againRemotely(
  composition: Composition,
  reference: string,
  mayWrite: boolean,
): Promise<string> {
  const { runAgain } = await import("#contract/operator/runs.ts");
  // One command is one rerun, even if it is sent twice on the way.
  const body = { may_write: mayWrite, idempotency_key: randomUUID() };
  return await onRemote(composition, async (service) =>
    JSON.stringify(await service.call(runAgain, { params: { runId: reference }, body })),
  );
}

async function againHere(composition: Composition, reference: string, mayWrite: boolean): Promise<string> {
  const [{ runAgain }, { sendRunChanges }] = await Promise.all([
    import("#actions/runs/run-again.ts"),
    import("#db/runs/run-notifier.ts"),
  ]);
  await composition.loadNodeTypes();
  const signing = openOwnSigning(composition);
  const blobs = await composition.openStore();
  const answer = await composition.withDatabase(async (db) => {
    const wish = { version: null, mayWrite };
    const by = { actor: { kind: "cli" } } as const;
    return await runAgain({ db, blobs, signing }, by, reference, wish, async (accountId, effect) => {
      const made = await db.transaction(effect);
      await sendRunChanges(db, "cli", { waiting: [accountId] });
      return made;
    });
  });
  return answer.body;
}
