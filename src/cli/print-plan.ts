import type { PlannedChange, PlannedDocument, PlanOutcome } from "#actions/config/apply-config.ts";
import { formatProblem, type ConfigProblem } from "#domain/config-problem.ts";
import { CommandFailed, EXIT_CODES, paint, print, tell } from "./output.ts";

/** A plan, of this machine's installation or of another one's. Throws CommandFailed with its own exit code if there are changes. */
export function printPlan(
  { changes, warnings, needs, base }: Omit<Extract<PlanOutcome, { ok: true }>, "ok">,
  json: boolean,
): void {
  for (const warning of warnings) tell(`warning: ${warning}`);
  for (const need of needs) tell(`needs two admins: ${need}`);
  print(json ? JSON.stringify({ changes, needs, base }) : describePlan(changes));
  const count = changes.filter(({ change }) => change !== "unchanged").length;
  if (count === 0) return;
  const what = count === 1 ? "One document" : `${count} documents`;
  const how = needs.length === 0 ? "" : " `apply` proposes this set for two admins to confirm.";
  throw new CommandFailed(`${what} would change; nothing has been changed.${how}`, EXIT_CODES.changes);
}

const SHOWN_CHARACTERS_MAX = 200;

export function describePlan(changes: readonly PlannedDocument[]): string {
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
