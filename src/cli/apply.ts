import type { Command } from "commander";
import type { PlannedChange } from "#actions/apply-config.ts";
import { formatProblem, type ConfigProblem } from "#domain/config-problem.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, paint, print, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { readSources } from "./read-sources.ts";

export function addApply(program: Command, composition: Composition): void {
  program
    .command("apply")
    .description("create and update the accounts, strategies and Blueprints that the files name")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .option("--json", "print the changes as JSON")
    .addHelpText("after", "\nExample:\n  latchkey apply -f examples")
    .action(
      async (options: { file: string[]; json?: boolean }) =>
        await apply(composition, options.file, options.json === true),
    );
}

async function apply(composition: Composition, paths: readonly string[], json: boolean): Promise<void> {
  const sources = readSources(paths);
  const { applyConfig, validateConfig } = await import("#actions/apply-config.ts");
  if (!composition.hasDatabase()) {
    // What is wrong with the documents is worth saying first: nothing is known yet that could mend it.
    const { problems } = validateConfig(sources);
    if (problems.length > 0) throw refusal(problems);
  }
  const { describeMissing, listMissingVariables } = await import("#actions/list-missing-variables.ts");
  const { outcome, missing } = await composition.withDatabase(async (db) => ({
    outcome: await applyConfig(db, openOwnSigning(composition), sources),
    missing: await listMissingVariables(db, composition.environmentSecret),
  }));
  if (!outcome.ok) throw refusal(outcome.problems);
  // No refusal: documents may be applied from a machine that has none of the service's secrets.
  for (const each of missing) tell(`warning: ${describeMissing(each)}.`);
  print(json ? JSON.stringify({ changes: outcome.changes }) : describeChanges(outcome.changes));
}

export function addValidate(program: Command): void {
  program
    .command("validate")
    .description("check documents without a database; what they refer to must be among them")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .addHelpText("after", "\nExample:\n  latchkey validate -f examples")
    .action(async (options: { file: string[] }) => {
      const { validateConfig } = await import("#actions/apply-config.ts");
      const { checked, problems } = validateConfig(readSources(options.file));
      if (problems.length > 0) throw refusal(problems);
      print(`${checked.length} document${checked.length === 1 ? "" : "s"} in order.`);
    });
}

/** Every problem with its place, on standard error. */
function refusal(problems: readonly ConfigProblem[]): CommandFailed {
  for (const problem of problems) tell(formatProblem(problem));
  const count = problems.length === 1 ? "One problem" : `${problems.length} problems`;
  return new CommandFailed(`${count}; nothing was changed.`);
}

const SIGNS = { create: "+", update: "~", retire: "-", unchanged: " " } as const;
const COLOURS = { create: "green", update: "yellow", retire: "red", unchanged: "dim" } as const;

function describeChanges(changes: readonly PlannedChange[]): string {
  const lines = changes.map(({ change, kind, account, id }) =>
    paint(
      COLOURS[change],
      `${SIGNS[change]} ${change.padEnd(9)} ${kind.padEnd(9)} ${kind === "account" ? id : `${account}/${id}`}`,
    ),
  );
  return lines.join("\n");
}
