import type { Static, TObject, TSchema } from "typebox";
import type { Permission } from "#domain/operator.ts";
import type { Failure } from "#contract/operation.ts";

/** One operation of the operator API. Its types are those of its handler. */
export interface OperatorOperation {
  /** Unique; a generated client's method is called like it. */
  readonly id: string;
  readonly method: "get" | "post" | "delete";
  /** Relative to `/operator/v1`, parameters in braces. */
  readonly path: string;
  /** Before it was renamed: answered for one release more. */
  readonly formerPath?: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** `open`: before anybody is signed in. */
  readonly permission: Permission | "open";
  /** Closed: another parameter is a 422. */
  readonly query?: TObject;
  /** Closed: another member is a 422. */
  readonly body?: TObject;
  /** Another limit than that of every body. */
  readonly bodyBytesMax?: number;
  readonly status: 200 | 201 | 204;
  readonly answer?: TSchema;
  /** The type of an answer that is written while it comes: texts or bytes, one after the other. */
  readonly streams?: "application/x-ndjson" | "text/event-stream" | "application/octet-stream";
  /** Beyond those that every operation has. */
  readonly failures?: readonly Failure[];
}

/** As it is written: without the tag of its file, and without a status where that is 200 with an answer, 204 without one. */
type WrittenOperation = Omit<OperatorOperation, "tag" | "status"> & { readonly status?: 201 };

/** Keeps the types of the schemas. */
export const operationsOf =
  (tag: string) =>
  <const O extends WrittenOperation>(operation: O): O & Pick<OperatorOperation, "tag" | "status"> => ({
    tag,
    status: operation.answer || operation.streams ? 200 : 204,
    ...operation,
  });

export interface OperatorInput<O extends OperatorOperation> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: O["query"] extends TObject ? Static<O["query"]> : Readonly<Record<string, never>>;
  readonly body: O["body"] extends TObject ? Static<O["body"]> : Readonly<Record<string, never>>;
}

export type OperatorAnswer<O extends OperatorOperation> = O["answer"] extends TSchema
  ? Static<O["answer"]>
  : O["streams"] extends string
    ? AsyncIterable<string | Uint8Array>
    : void;

/** Left out of a schema that wants none. */
export const requiredOf = (schema: TObject | undefined): readonly string[] =>
  (schema as { required?: readonly string[] } | undefined)?.required ?? [];
