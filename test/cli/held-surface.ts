/** The held surface (docs/decisions/0032) as the program has it, a line for each name, beside the checked-in list. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Composition } from "#cli/composition.ts";
import { EXIT_CODES } from "#cli/output.ts";
import { buildProgram } from "#cli/program.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import * as blueprints from "#contract/operator/blueprints.ts";
import * as credentials from "#contract/operator/credentials.ts";
import * as proposals from "#contract/operator/proposals.ts";
import * as runs from "#contract/operator/runs.ts";
import * as schedules from "#contract/operator/schedules.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { SETTINGS } from "#service/settings/settings.ts";

const LIST = "test/fixtures/held-surface.txt";

/** The lines of the checked-in list. */
export const readHeldSurface = (): readonly string[] =>
  readFileSync(new URL(`../../${LIST}`, import.meta.url), "utf8")
    .split("\n")
    .filter(Boolean);

/** What to do when the program and the list differ. */
export const remedy = (gone: readonly string[], added: readonly string[]): string =>
  [
    ...(gone.length === 0
      ? []
      : [
          "These names of the held surface are gone. Scripts use them: keep them, or answer under both names for one release",
          `and say so in CHANGELOG.md; only then take the lines out of ${LIST}:`,
          ...gone.map((line) => `- ${line}`),
        ]),
    ...(added.length === 0
      ? []
      : [
          `These names are new. From the next release on they can't change: when they are right, add the lines to ${LIST}:`,
          ...added.map((line) => `+ ${line}`),
        ]),
  ].join("\n");

/** Fails with the remedy when the program has other lines than the list. */
export function expectHeld(actual: readonly string[], held: readonly string[]): void {
  const gone = held.filter((line) => !actual.includes(line));
  const added = actual.filter((line) => !held.includes(line));
  assert.ok(gone.length + added.length === 0, `\n${remedy(gone, added)}`);
}

/** Every command. Building them opens nothing, so there is no need for a composition. */
function commandsOf(parent: Command, prefix = ""): readonly (readonly [string, Command])[] {
  return parent.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    return command.commands.length > 0 ? commandsOf(command, `${name} `) : [[name, command] as const];
  });
}

export const listCommands = async (): Promise<readonly (readonly [string, Command])[]> =>
  commandsOf(await buildProgram({} as Composition));

/** Everything but the fields of `--json`. */
export async function programSurface(): Promise<readonly string[]> {
  return [
    ...(await listCommands()).flatMap(([name, command]) => [
      [
        "command",
        name,
        ...command.registeredArguments.map(({ required }) => (required ? "ARG" : "[ARG]")),
      ].join(" "),
      ...command.options.map(
        ({ flags, mandatory }) =>
          `option ${name} ${flags.replace(/<[^>.]*/, "<VALUE")}${mandatory ? " (required)" : ""}`,
      ),
    ]),
    ...Object.entries(EXIT_CODES).map(([name, code]) => `exit ${code} ${name}`),
    ...OPERATIONS.map(({ method, path }) => `route ${method} ${path}`),
    ...OPERATOR_OPERATIONS.flatMap(({ method, path, formerPath }) => [
      `route ${method} /operator/v1${path}`,
      ...(formerPath === undefined ? [] : [`route ${method} /operator/v1${formerPath} (former)`]),
    ]),
    ...SETTINGS.map(({ name }) => `setting ${name}`),
  ];
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** Commands that print what the operator API answers. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  "blueprints list": blueprints.listBlueprints.answer,
  "blueprints show": blueprints.readBlueprint.answer,
  "proposals list": proposals.listProposals.answer,
  "proposals show": proposals.readProposal.answer,
  "runs list": runs.listRuns.answer,
  "runs show": runs.readRun.answer,
  "schedules list": schedules.listSchedules.answer,
  "schedules run": schedules.runSchedule.answer,
  "schedules show": schedules.readSchedule.answer,
  "sessions list": credentials.listCredentialSessions.answer,
};

/** The fields of `--json` that the contract gives. The others are observed where a test runs the command: `expectHeldJson`. */
export const answerFields = (): readonly string[] =>
  Object.entries(ANSWERS).flatMap(([command, answer]) =>
    fieldsOfSchema(answer as Schema).map((field) => `json ${command} ${field}`),
  );

export const answersOf = (line: string): boolean =>
  Object.keys(ANSWERS).some((command) => line.startsWith(`json ${command} `));

function fieldsOfSchema({ properties = {} }: Schema, prefix = ""): readonly string[] {
  return Object.entries(properties).flatMap(([name, { items }]) => [
    `${prefix}${name}`,
    ...(items?.properties ? fieldsOfSchema(items, `${prefix}${name}.`) : []),
  ]);
}

/** Fields of a value, those of items as `items.id`. A list has the fields of its first item. */
function fieldsOf(value: object, prefix = ""): readonly string[] {
  return Object.entries(value).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    if (!Array.isArray(field)) return [path];
    const [first] = field as unknown[];
    return [path, ...(typeof first === "object" && first !== null ? fieldsOf(first, `${path}.`) : [])];
  });
}

/** Fails with the remedy unless what `--json` printed has just the fields of the list. */
export function expectHeldJson(command: string, printed: object): void {
  const prefix = `json ${command} `;
  expectHeld(
    fieldsOf(printed).map((field) => prefix + field),
    readHeldSurface().filter((line) => line.startsWith(prefix)),
  );
}
