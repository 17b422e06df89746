import type { Command } from "commander";
import type { PlannedChange, PlannedDocument } from "#actions/config/apply-config.ts";
import type { ConfigSource } from "#actions/config/check-sources.ts";
import { formatProblem, formatWarning, sortProblems, type ConfigProblem } from "#domain/config-problem.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, paint, print, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { proposedInstead } from "./proposed.ts";
import { readSources } from "./read-sources.ts";

export function addApply(program: Command, composition: Composition): void {
  program
    .command("apply")
    .description("create and update the accounts, strategies and Blueprints in the files")
    .requiredOption("-f, --file <path...>", "files or folders with YAML or JSON documents")
    .option("--json", "print the changes as JSON")
    .addHelpText(
      "after",
      "\nExit code 4: an account requires a second admin for one of the changes. Nothing was changed; the set was proposed.\n" +
        "\nExample:\n  latchkey apply -f examples",
    )
    .action(
      async (options: { file: string[]; json?: boolean }) =>
        await apply(composition, options.file, options.json === true),
    );
}

async function apply(composition: Composition, paths: readonly string[], json: boolean): Promise<void> {
  const sources = await readChecked(composition, paths);
  const { applyConfig } = await import("#actions/config/apply-config.ts");
  const { describeSecretProblem, listSecretProblems } =
    await import("#actions/secrets/list-secret-problems.ts");
  const ofSettings = composition.secretSources();
  const { outcome, problems } = await composition.withDatabase(async (db) => ({
    outcome: await applyConfig(db, openOwnSigning(composition), sources, { inFile: ofSettings.inFile }),
    problems: await listSecretProblems(db, ofSettings),
  }));
  if (!outcome.ok) throw refusal(outcome.problems);
  // Not an error: documents may be applied from a machine that has none of the service's secrets.
  for (const each of problems) tell(`warning: ${describeSecretProblem(each)}.`);
  for (const warning of outcome.warnings) tell(`warning: ${warning}`);
  if (outcome.proposal !== null) {
    if (json) print(JSON.stringify({ changes: [], proposal: outcome.proposal }));
    throw proposedInstead(composition, outcome.proposal);
  }
  print(json ? JSON.stringify({ changes: outcome.changes }) : describePlan(outcome.changes));
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
      const sources = await readChecked(composition, options.file);
      const { inFile } = composition.secretSources();
      const { planConfig } = await import("#actions/config/apply-config.ts");
      const outcome = await composition.withDatabase(async (db) => await planConfig(db, sources, { inFile }));
      if (!outcome.ok) throw refusal(outcome.problems);
      const { changes, warnings, needs } = outcome;
      for (const warning of warnings) tell(`warning: ${warning}`);
      for (const need of needs) tell(`needs two admins: ${need}`);
      print(options.json === true ? JSON.stringify({ changes, needs }) : describePlan(changes));
      const count = changes.filter(({ change }) => change !== "unchanged").length;
      if (count > 0) {
        const what = count === 1 ? "One document" : `${count} documents`;
        const how = needs.length === 0 ? "" : " `apply` proposes this set for two admins to confirm.";
        throw new CommandFailed(`${what} would change; nothing has been changed.${how}`, EXIT_CODES.changes);
      }
    });
}

const SHOWN_CHARACTERS_MAX = 200;

function describePlan(changes: readonly PlannedDocument[]): string {
  const texts = changes.map(({ differences, ...change }) =>
    [describeChanges([change]), ...differences.map(describeDifference)].join("\n"),
  );
  return texts.join("\n");
}

function describeDifference({ path, before, after }: PlannedDocument["differences"][number]): string {
  const [was, is] = [shown(before), shown(after)];
  if (was === null) return paint("green", `      + ${path}: ${is ?? ""}`);
  if (is === null) return paint("red", `      - ${path}: ${was}`);
  return `      ${paint("yellow", "~")} ${path}: ${paint("red", was)} → ${paint("green", is)}`;
}

function shown(value: unknown): string | null {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
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

/** Prints every problem with its place to standard error. */
export function refusal(problems: readonly ConfigProblem[]): CommandFailed {
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
