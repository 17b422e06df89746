import Type, { type TProperties, type TSchema } from "typebox";
import { OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import type { Failure } from "#contract/operation.ts";
import { errorExample } from "#contract/failures.ts";

/** A closed object: in a request another member is a 422, and an answer never has another one. */
export const closed = <P extends TProperties>(properties: P, options: { title?: string } = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false });

export const text = (description: string) => Type.String({ description });

/** UTC with milliseconds. */
export const time = (description: string) => Type.String({ format: "date-time", description });

export const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const count = (description: string) => Type.Integer({ minimum: 0, description });

export const role = Type.Unsafe<OperatorRole>({
  type: "string",
  enum: [...OPERATOR_ROLES],
  description: "What the operator may do.",
});

/** A list that is short by its nature: all of it at once. */
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
