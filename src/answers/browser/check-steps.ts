import { kindsOf, stepKinds } from "#answers/steps/step-kinds.ts";
import { quote, quoteList, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { parseDuration } from "#domain/duration.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { findNamedParts } from "#domain/named-schema.ts";
import type { StepConfig, StepPlace } from "./define-step.ts";
import { stepsSchema } from "./step-schema.ts";

/**
 * Mistakes of a list of steps that the schema can't express, at any depth. Steps that don't satisfy their schema are left out, because
 * what is wrong with them has been said already.
 */
export function stepFindings(
  steps: Json | undefined,
  place: StepPlace,
  path: ConfigPath,
): readonly ConfigFinding[] {
  const schema = stepsSchema(place, "");
  return listSteps(steps, path).flatMap(({ step, path: at }) => {
    const kinds = kindsOf(step).filter(({ only }) => only === undefined || only === place);
    const [kind, second] = kinds;
    if (second !== undefined)
      return [
        {
          path: [...at, second.kind],
          at: "key" as const,
          message: `a step does one thing; make ${quote(second.kind)} a step of its own`,
        },
      ];
    if (kind === undefined) return noKind(step, at, place);
    const config = step[kind.kind];
    const isSound = [...findNamedParts(schema, [step], [])].every((part) =>
      matchesSchema(part.schema, part.value),
    );
    return [
      ...besideFindings(step, at),
      ...timeoutFindings(step, at),
      ...(isSound ? (kind.check?.(config as never, [...at, kind.kind], step) ?? []) : []),
    ];
  });
}

function noKind(step: StepConfig, path: ConfigPath, place: StepPlace): readonly ConfigFinding[] {
  const own = stepKinds.filter(({ only }) => only === undefined || only === place);
  const known = Object.keys(step).every((key) => ["timeout", "steps"].includes(key));
  // A misspelled key has its own message.
  return known
    ? [{ path, message: `a step needs one of ${quoteList(own.map(({ kind }) => kind))}; add one` }]
    : [];
}

function besideFindings(step: StepConfig, path: ConfigPath): readonly ConfigFinding[] {
  if (step["steps"] === undefined || step["when"] !== undefined) return [];
  return [{ path: [...path, "steps"], at: "key", message: "only `when` has `steps` beside it; remove them" }];
}

function timeoutFindings({ timeout }: StepConfig, path: ConfigPath): readonly ConfigFinding[] {
  const ms = parseDuration(timeout ?? null);
  if (ms === undefined || (ms > 0 && ms <= limits.browserStepMsMax)) return [];
  return [{ path: [...path, "timeout"], message: "must be more than 0 and at most `5m`" }];
}

interface ListedStep {
  readonly step: StepConfig;
  readonly path: ConfigPath;
}

/** Every step of a list, at any depth, also in parts that are invalid. */
export function listSteps(steps: Json | undefined, path: ConfigPath): readonly ListedStep[] {
  return (Array.isArray(steps) ? steps : []).flatMap((step: Json, index: number) => {
    if (!isJsonObject(step)) return [];
    const at = [...path, index];
    const inner = Object.entries(step).flatMap(([key, part]) =>
      isJsonObject(part)
        ? [
            ...listSteps(part["steps"], [...at, key, "steps"]),
            ...listSteps(part["next"], [...at, key, "next"]),
          ]
        : [],
    );
    return [{ step, path: at }, ...inner, ...listSteps(step["steps"], [...at, "steps"])];
  });
}
