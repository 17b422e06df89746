import type { TObject, TUnsafe } from "typebox";
import type { ExpressionScopeKind } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import { Type } from "#lib/type.ts";
import { stepKinds } from "#answers/steps/step-kinds.ts";
import type { ConditionConfig } from "./condition-config.ts";
import { conditionKeys } from "./condition.ts";
import { stepReference, termsOf, type StepPlace } from "./define-step.ts";

const SCOPES: Readonly<Record<StepPlace, ExpressionScopeKind>> = { login: "login", node: "run" };

const made = new Map<StepPlace, TObject>();

/** The schema of one step of a place: an object with the key of its kind, in the terms of the place. */
function stepSchema(place: StepPlace): TObject {
  let schema = made.get(place);
  if (schema !== undefined) return schema;
  const terms = termsOf(place, SCOPES[place], () => stepSchema(place));
  const kinds = stepKinds.filter(({ only }) => only === undefined || only === place);
  schema = Type.Object(
    {
      ...Object.fromEntries(
        kinds.map(({ kind, description, schema: schemaOf }) => [
          kind,
          Type.Optional(Object.assign(schemaOf(terms), { description })),
        ]),
      ),
      ...Object.fromEntries(
        kinds.flatMap(({ beside }) =>
          Object.entries(beside?.(terms) ?? {}).map(([key, each]) => [key, Type.Optional(each)]),
        ),
      ),
      timeout: Type.Optional(terms.duration("How long the step may wait for the page. Default: 10s.")),
    },
    { additionalProperties: false, minProperties: 1 },
  );
  made.set(place, schema);
  return schema;
}

/** A condition outside of the steps. */
export const conditionSchema = (place: StepPlace, description: string): TUnsafe<ConditionConfig> =>
  Type.Unsafe<ConditionConfig>(
    Type.Object(conditionKeys(termsOf(place, SCOPES[place], () => stepSchema(place))), {
      additionalProperties: false,
      description,
    }),
  );

/** The key `steps` of a login or a node. */
export const stepsSchema = (place: StepPlace, description: string) =>
  Type.Array(
    stepReference(place, () => stepSchema(place)),
    { minItems: 1, maxItems: limits.browserStepsMax, description },
  );

/** The key `evidence` of a login or a node. */
export const evidenceSchema = <const Choice extends "on_failure" | "always" | "off">(
  choices: readonly Choice[],
) =>
  Type.Enum(choices, {
    description: `When operators see what the page showed: a picture with everything covered that may be secret, an outline, errors of its console and refused requests. ${choices.some((choice) => choice === "always") ? "`always`: also when the steps are done. `off`: never, nor while it runs. " : ""}Default: on_failure.`,
  });
