import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION, type BoundExpressions, type Outcome, type Scope } from "#domain/expression.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import type { DataRecord, RecordBatches, RecordError } from "#domain/record.ts";
import { compileAuthorSchema, type AuthorSchema } from "#domain/record-schema.ts";
import { assert } from "#lib/assert.ts";
import { defineNode, NodeFailure, type Flow } from "#nodes/define-node.ts";
import { readConfig } from "#domain/read-config.ts";
import { indexedBatches, recordScopes } from "#nodes/records/record-flow.ts";

const schema = Type.Object(
  {
    schema: Type.Optional(
      Type.Unsafe<Json>({
        description:
          "A JSON Schema (2020-12) that a record's data must satisfy. Its patterns run in linear time (no look-ahead).",
      }),
    ),
    rules: Type.Optional(
      Type.Array(
        Type.Object(
          {
            assert: Type.String({
              minLength: 1,
              [EXPRESSION]: "record",
              description: "A condition: the record has an error unless it is true.",
            }),
            field: Type.Optional(
              Type.String({ minLength: 1, description: "Dot path of the field with the error." }),
            ),
            message: Type.Optional(
              Type.String({ minLength: 1, description: "The error's message. Default: the rule itself." }),
            ),
            code: Type.Optional(
              Type.String({ minLength: 1, description: "The error's code. Default: rule." }),
            ),
          },
          { additionalProperties: false },
        ),
        { minItems: 1, description: "Conditions that JSON Schema can't express." },
      ),
    ),
    on_invalid: Type.Optional(
      Type.Enum(["mark", "drop", "fail"], {
        default: "mark",
        description:
          "What happens to an invalid record: it is marked (isValid false, with its errors), left out, or the run fails.",
      }),
    ),
  },
  { additionalProperties: false },
);

type Rule = NonNullable<Static<typeof schema>["rules"]>[number];

/** docs/nodes/validate.md. */
export const node = defineNode({
  type: "validate",
  description: "Adds errors to records that don't match the schema or a rule.",
  schema,
  takes: "records",
  usesCredential: false,
  gives: () => "records",
  effect: () => "none",
  check: (config) => {
    const author = config["schema"];
    if (author === undefined && config["rules"] === undefined)
      return [{ path: [], message: "a validate node needs a `schema`, `rules`, or both" }];
    const compiled = author === undefined ? null : compileAuthorSchema(author);
    return compiled !== null && "problem" in compiled
      ? [{ path: ["schema"], message: compiled.problem }]
      : [];
  },
  run: (context, raw) => {
    const { on_invalid: onInvalid = "mark" } = readConfig(schema, raw);
    const batches = checked(context.from, recordCheck(context.expressions, raw));
    return Promise.resolve({
      kind: "records",
      batches:
        onInvalid === "mark" ? batches : onInvalid === "drop" ? validOnly(batches) : allValidOrFail(batches),
    });
  },
});

/** Adds the errors that a `validate` node with this config finds. Each record has the scope for its rules. */
export type RecordCheck = (
  records: readonly DataRecord[],
  scopes: readonly Scope[],
) => Promise<readonly DataRecord[]>;

export function recordCheck(expressions: BoundExpressions, raw: JsonObject): RecordCheck {
  const config = readConfig(schema, raw);
  const author = config.schema === undefined ? null : compiledSchema(config.schema);
  const rules = config.rules ?? [];
  const asserts = rules.map((rule) => rule.assert);
  return async (records, scopes) => {
    const outcomes = rules.length === 0 ? [] : await expressions.evaluateBatch(asserts, scopes);
    return records.map((record, index): DataRecord => {
      const row = outcomes[index] ?? [];
      refuseExhausted(row, scopes[index]);
      const found = [...(author?.validate(record.data) ?? []), ...brokenRules(rules, row)];
      return found.length === 0
        ? record
        : { data: record.data, errors: [...record.errors, ...found], isValid: false };
    });
  };
}

function compiledSchema(schema: Json): AuthorSchema {
  const compiled = compileAuthorSchema(schema);
  assert(!("problem" in compiled), "apply has compiled the schema");
  return compiled;
}

async function* checked(from: readonly Flow[], check: RecordCheck): RecordBatches {
  for await (const { first, batch } of indexedBatches(from))
    yield await check(batch, recordScopes(batch, first));
}

/** A rule that takes too long says nothing about the record, so the node fails. */
function refuseExhausted(outcomes: readonly Outcome[], scope: Scope | undefined): void {
  for (const [rule, outcome] of outcomes.entries()) {
    if (outcome.ok || outcome.isExhausted !== true) continue;
    throw new NodeFailure(`Record ${Number(scope?.variables?.["index"])}: rules.${rule}: ${outcome.message}`);
  }
}

/** A rule that can't be evaluated on a record (a string instead of a number, for example) counts as not met. */
function brokenRules(rules: readonly Rule[], outcomes: readonly Outcome[]): readonly RecordError[] {
  return rules.flatMap((rule, index) => {
    const outcome = outcomes[index];
    if (outcome?.ok === true && outcome.value === true) return [];
    return [
      {
        field: rule.field ?? null,
        code: rule.code ?? "rule",
        message: rule.message ?? `Rule not met: ${rule.assert}`,
      },
    ];
  });
}

async function* validOnly(batches: RecordBatches): RecordBatches {
  for await (const batch of batches) {
    const valid = batch.filter((record) => record.isValid);
    if (valid.length > 0) yield valid;
  }
}

/** No record is output after the first invalid one; the rest is only counted, for the message. */
async function* allValidOrFail(batches: RecordBatches): RecordBatches {
  let total = 0;
  let invalid = 0;
  for await (const batch of batches) {
    total += batch.length;
    invalid += batch.filter((record) => !record.isValid).length;
    if (invalid === 0) yield batch;
  }
  if (invalid > 0)
    throw new NodeFailure(`${invalid} of ${total} records are invalid, and on_invalid is fail.`);
}
