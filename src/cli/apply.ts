import { InvalidArgumentError, type Command } from "commander";
import type { CheckOptions } from "#actions/config/apply-config.ts";
import type { ConfigSource } from "#actions/config/check-sources.ts";
import { formatWarning, sortProblems } from "#domain/config-problem.ts";
import type { Database } from "#db/connection/pool.ts";
import { ask, canAsk } from "./ask.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { describePlan, printPlan, refusal } from "./print-plan.ts";
import { proposedInstead } from "./proposed.ts";
import { readSources } from "./read-sources.ts";
import { applyRemotely, planRemotely, type ApplyOptions } from "./remote-documents.ts";

export function addApply(program: Command, composition: Composition): void {
  program
    .command("apply")
    .description("create and update the accounts, strategies and Blueprints in the files")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .option("--base <hash>", "`base` of `plan --json`: refuse if a document has been changed since", readBase)
    .option("--json", "print the changes as JSON")
    .option("-y, --yes", "undo changes of the dashboard without asking")
    .addHelpText(
      "after",
      "\nAt a terminal it asks before it undoes what was published in the dashboard since; otherwise it warns.\n" +
        "\nExit code 4: an account requires a second admin for one of the changes. Nothing was changed; the set was proposed.\n" +
        "\nExample:\n  latchkey apply -f examples",
    )
    .action(
      async (options: ApplyOptions) =>
        await (composition.isRemote() ? applyRemotely(composition, options) : apply(composition, options)),
    );
}

function readBase(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  throw new InvalidArgumentError("It must be the `base` that `plan --json` prints.");
}

async function apply(composition: Composition, { file, base, json, yes }: ApplyOptions): Promise<void> {
  const sources = await readChecked(composition, file);
  const { applyConfig } = await import("#actions/config/apply-config.ts");
  const { describeSecretProblem, listSecretProblems } =
    await import("#actions/secrets/list-secret-problems.ts");
  const ofSettings = composition.secretSources();
  const { outcome, problems } = await composition.withDatabase(async (db) => {
    // With a base, the plan has named them, and nobody has changed anything since.
    await warnOfDrift(db, sources, ofSettings, canAsk() && yes !== true && base === undefined);
    return {
      outcome: await applyConfig(db, openOwnSigning(composition), sources, {
        inFile: ofSettings.inFile,
        base,
      }),
      problems: await listSecretProblems(db, ofSettings),
    };
  });
  if (!outcome.ok) throw refusal(outcome.problems);
  // Not an error: documents may be applied from a machine that has none of the service's secrets.
  for (const each of problems) tell(`warning: ${describeSecretProblem(each)}.`);
  for (const warning of outcome.warnings) tell(`warning: ${warning}`);
  if (outcome.proposal !== null) {
    if (json === true) print(JSON.stringify({ changes: [], proposal: outcome.proposal }));
    throw proposedInstead(composition.config().publicUrl ?? "", outcome.proposal);
  }
  print(json === true ? JSON.stringify({ changes: outcome.changes }) : describePlan(outcome.changes));
}

/** Names what the files undo of the dashboard's changes, and asks whether they should. Throws CommandFailed: they should not. */
async function warnOfDrift(
  db: Database,
  sources: readonly ConfigSource[],
  options: CheckOptions,
  isAsked: boolean,
): Promise<void> {
  const { describeDrift, findDrift } = await import("#actions/config/find-drift.ts");
  const drift = await findDrift(db, sources, options);
  for (const each of drift) tell(`warning: ${describeDrift(each)}`);
  if (drift.length > 0 && isAsked && !(await ask("Apply the files anyway?")))
    throw new CommandFailed(
      "Nothing was changed. `latchkey export` prints the current documents; take the changes into your files.",
    );
}

/** Problems that don't depend on the database are reported before it is opened. */
async function readChecked(
  composition: Composition,
  paths: readonly string[],
): Promise<readonly ConfigSource[]> {
  await composition.loadNodeTypes();
  const sources = readSources(paths);
  if (composition.hasDatabase()) return sources;
  const { validateConfig } = await import("#actions/config/apply-config.ts");
  const { problems } = validateConfig(sources, { secrets: composition.secretSources().inFile });
  if (problems.length > 0) throw refusal(problems);
  return sources;
}

export function addPlan(program: Command, composition: Composition): void {
  program
    .command("plan")
    .description("show what `apply` would change; exit code 3 when it would change something")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .option("--json", "print the changes as JSON")
    .addHelpText("after", "\nExample:\n  latchkey plan -f examples")
    .action(async (options: { file: string[]; json?: boolean }) => {
      if (composition.isRemote()) return await planRemotely(composition, options);
      const sources = await readChecked(composition, options.file);
      const { inFile } = composition.secretSources();
      const { planConfig } = await import("#actions/config/apply-config.ts");
      const outcome = await composition.withDatabase(async (db) => {
        await warnOfDrift(db, sources, { inFile }, false);
        return await planConfig(db, sources, { inFile });
      });
      if (!outcome.ok) throw refusal(outcome.problems);
      printPlan(outcome, options.json === true);
    });
}

export function addValidate(program: Command, composition: Composition): void {
  program
    .command("validate")
    .description("check documents without a database; everything they refer to must be among them")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .addHelpText("after", "\nExample:\n  latchkey validate -f examples")
    .action(async (options: { file: string[] }) => {
      await composition.loadNodeTypes();
      const { validateConfig } = await import("#actions/config/apply-config.ts");
      const { checked, problems } = validateConfig(readSources(options.file), {
        secrets: composition.secretSources().inFile,
      });
      if (problems.length > 0) throw refusal(problems);
      for (const warning of sortProblems(checked.flatMap(({ warnings }) => warnings)))
        tell(formatWarning(warning));
      print(`${checked.length} document${checked.length === 1 ? " is" : "s are"} valid.`);
    });
}
