import type { TProperties, TSchema } from "typebox";
import { Type } from "#lib/type.ts";
import { OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import { limits } from "#domain/limits.ts";
import type { Failure } from "#contract/operation.ts";
import { errorExample } from "#contract/failures.ts";

/** A closed object: another member in a request is a 422, and an answer never has one. */
export const closed = <P extends TProperties>(properties: P, options: { title?: string } = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false });

export const text = (description: string) => Type.String({ description });

/** UTC with milliseconds. */
export const time = (description: string) => Type.String({ format: "date-time", description });

export const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const count = (description: string) => Type.Integer({ minimum: 0, description });

/** One of a few strings. */
export const oneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: "string", enum: [...values], description });

export const role = Type.Unsafe<OperatorRole>({
  type: "string",
  enum: [...OPERATOR_ROLES],
  description: "The operator's role.",
});

/** A time in a request, with any precision, in UTC or with an offset. */
export const givenTime = (description: string) =>
  Type.String({
    pattern:
      "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d{1,6})?)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d))?$",
    description: `${description} ISO 8601, for example 2026-11-21 or 2026-11-21T07:08:09Z.`,
  });

/** The account that a list is narrowed to. */
export const ofAccount = Type.Optional(Type.String({ maxLength: 200, description: "The account's name." }));

/** Parameters of every list. */
export const paging = {
  cursor: Type.Optional(
    Type.String({
      maxLength: 500,
      description: "`next_cursor` of the previous page; default: the first page.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.pageItemsMax,
      description: `Items per page; default ${limits.pageItems}.`,
    }),
  ),
};

/** A list's answer. The order is stable: items that are added while a caller reads pages don't move those already read. */
export const page = <S extends TSchema>(title: string, items: S) =>
  closed(
    {
      items: Type.Array(items),
      next_cursor: orNull(text("The cursor of the next page; `null`: this is the last one.")),
    },
    { title },
  );

/** A record of a result or of a review. */
export const record = (title: string) =>
  closed(
    {
      ordinal: count("Its ordinal, from 0."),
      data: Type.Unknown({ description: "The record." }),
      errors: Type.Array(Type.Unknown(), { description: "Its errors." }),
      is_valid: Type.Boolean({ description: "Whether it has no errors." }),
    },
    { title },
  );

/** A list that is always short and is returned completely. */
export const whole = <S extends TSchema>(title: string, items: S) =>
  closed({ items: Type.Array(items) }, { title });

export const missing = (what: string): Failure => ({
  status: 404,
  description: `There is no such ${what}.`,
  examples: { not_found: errorExample("not_found", "Not found.") },
});

export const conflict = (description: string): Failure => ({
  status: 409,
  description,
  examples: { conflict: errorExample("conflict", description) },
});
