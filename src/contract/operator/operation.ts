import type { Static, TObject, TSchema } from "typebox";
import type { Permission } from "#domain/operator.ts";
import type { Failure } from "#contract/operation.ts";

/** One operation of the operator API. Its types are those of its handler. */
export interface OperatorOperation {
  /** Unique; used as the method's name in generated clients. */
  readonly id: string;
  readonly method: "get" | "post" | "delete";
  /** Relative to `/operator/v1`, parameters in braces. */
  readonly path: string;
  /** The path before it was renamed, which is supported for one more release. */
  readonly formerPath?: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** `open`: no sign-in is needed. */
  readonly permission: Permission | "open";
  /**
   * For callers that are limited to accounts, of an operation whose path and body name none. `documents`: its action checks the accounts
   * of the documents. `own`: its action reads only what is of the caller's accounts. `none`: its answer has nothing of any account.
   * Without it a query must name one of the accounts, and an operation without such a query is refused.
   */
  readonly accounts?: "documents" | "own" | "none";
  /** Closed: another parameter is a 422. */
  readonly query?: TObject;
  /** Closed: another member is a 422. */
  readonly body?: TObject;
  /** A limit other than the general one for bodies. */
  readonly bodyBytesMax?: number;
  readonly status: 200 | 201 | 204;
  readonly answer?: TSchema;
  /** The content type of a streamed answer, which consists of strings or bytes. */
  readonly streams?: "application/x-ndjson" | "text/event-stream" | "application/octet-stream" | "image/png";
  /** In addition to those of every operation. */
  readonly failures?: readonly Failure[];
}

/** An operation as its file defines it: without the file's tag, and without the default status (200 with an answer, 204 without one). */
type WrittenOperation = Omit<OperatorOperation, "tag" | "status"> & { readonly status?: 201 };

/** Preserves the types of the schemas. */
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

/** Undefined if the operation has no such schema. */
export const requiredOf = (schema: TObject | undefined): readonly string[] =>
  (schema as { required?: readonly string[] } | undefined)?.required ?? [];
