import { Type } from "#lib/type.ts";
import { readNode, type BlueprintNode } from "#domain/blueprint.ts";
import { commonNodeKeys } from "#domain/config-schema.ts";
import type { Edition } from "#domain/edition.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { effectOf, httpSchema } from "#nodes/http/http-config.ts";

const { for_each: _each, concurrency: _concurrency, ...httpKeys } = httpSchema.properties;

/** A step is a request for the record of its iteration: the keys of `http`, without those that iterate over records. */
export const stepSchema = Type.Object(
  {
    id: commonNodeKeys.id,
    type: Type.String({ description: "`http`." }),
    name: commonNodeKeys.name,
    when: Type.Optional(
      Type.String({
        [EXPRESSION]: "record",
        minLength: 1,
        description: "A condition over the record: if it is not true, the step is skipped in this iteration.",
      }),
    ),
    credential: commonNodeKeys.credential,
    timeout: commonNodeKeys.timeout,
    retry: commonNodeKeys.retry,
    ...httpKeys,
  },
  { additionalProperties: false },
);

/** The keys of a step that are no keys of `http`. */
export const STEP_KEYS = {
  id: stepSchema.properties.id,
  type: stepSchema.properties.type,
  name: stepSchema.properties.name,
  when: stepSchema.properties.when,
  credential: stepSchema.properties.credential,
  timeout: stepSchema.properties.timeout,
  retry: stepSchema.properties.retry,
};

export const loopSchema = Type.Object(
  {
    for_each: Type.String({
      minLength: 1,
      description: "A node that outputs records: the steps are executed for each record, in order.",
    }),
    steps: Type.Array(stepSchema, {
      minItems: 1,
      maxItems: limits.loopStepsMax,
      description: "`http` nodes, executed in this order for each record.",
    }),
    gives: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "record",
        description:
          "An expression over the record, with `$steps`: the output of an iteration, which is an object, a list of objects, or nothing. Default: the unchanged record.",
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.requestsAtOnceMax,
        default: 1,
        description: "Concurrent iterations.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** The steps as written. Called with any config. */
export function stepsOf(config: JsonObject): readonly JsonObject[] {
  const { steps } = config;
  return Array.isArray(steps) ? steps.filter((step: Json) => isJsonObject(step)) : [];
}

/** Their ids, in their order. */
export const stepIds = (config: JsonObject): readonly string[] =>
  stepsOf(config).flatMap(({ id }) => (typeof id === "string" ? [id] : []));

export const isWriteStep = (step: JsonObject): boolean => effectOf(step) === "write";

/** The steps of a checked loop, as nodes. Their ids are unique in the loop; in the journal they follow the loop's id. */
export function stepNodes(config: JsonObject, edition: Edition): readonly BlueprintNode[] {
  return stepsOf(config).map((step) => readNode(step, edition));
}

/** A step in the journal, in reviews and in throttles. Ids have no dot. */
export const stepIdOf = (loop: string, step: string): string => `${loop}.${step}`;
