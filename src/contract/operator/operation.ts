import type { Static, TObject, TSchema } from "typebox";
import { PERMISSIONS, stepUpOf, type Permission } from "#domain/operator.ts";
import type { Failure, Operation, Parameter } from "#contract/operation.ts";

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

/** Keeps the types of the schemas. */
export const defineOperation = <const O extends OperatorOperation>(operation: O): O => operation;

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

const PARAMETERS: Readonly<Record<string, string>> = {
  runId: "The run's id (`run_...`) or its `run_key` (a UUID).",
  sessionId: "The session's id (`ops_...`).",
  operatorId: "The operator's id (`op_...`).",
  reviewId: "The review's id (`rev_...`).",
  credentialId: "The credential's id (`cred_...`).",
  proposalId: "The proposal's id (`prop_...`).",
  keyId: "The API key's id (`key_...`).",
  account: "The account's name in its document.",
  secret: "The account secret's name.",
  strategyId: "The strategy's id (`strat_...`).",
  blueprintKey: "The Blueprint's key.",
  version: "The version's number.",
  chain: "The account's id, or `installation`.",
  node: "The node's id.",
  record: "The record's place, from 0.",
  resultKey: "The output's key.",
};

/** Left out of a schema that wants none. */
export const requiredOf = (schema: TObject | undefined): readonly string[] =>
  (schema as { required?: readonly string[] } | undefined)?.required ?? [];

/** As the document's writer takes it. */
export function toOperation(operation: OperatorOperation): Operation {
  const { id, method, path, tag, summary, status, answer, streams, body, query } = operation;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]): Parameter => {
    const description = PARAMETERS[name] ?? "";
    return { name, in: "path", required: true, description, schema: { type: "string" } };
  });
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]): Parameter => {
    const { description = "", ...rest } = schema as { description?: string };
    return {
      name,
      in: "query",
      required: requiredOf(query).includes(name),
      description,
      schema: rest,
    };
  });
  return {
    id,
    method,
    path,
    tag,
    summary,
    description: [
      operation.description,
      explainFormerPath(operation),
      explainPermission(operation.permission),
    ]
      .filter(Boolean)
      .join("\n\n"),
    parameters: [...inPath, ...inQuery],
    body: body && { required: true, content: { "application/json": { schema: body, examples: {} } } },
    answers: [
      {
        status,
        description: answer || streams ? "Done." : "Done; there is nothing to say.",
        content: contentOf(operation),
      },
    ],
    failures: operation.failures ?? [],
    curl: {},
    isOpen: operation.permission === "open",
  };
}

const explainFormerPath = ({ formerPath }: OperatorOperation): string =>
  formerPath === undefined ? "" : `Was \`${formerPath}\`, which is answered until the next release.`;

function contentOf({
  answer,
  streams,
}: OperatorOperation): NonNullable<Operation["answers"][number]["content"]> | undefined {
  if (streams) return { [streams]: { schema: { type: "string" }, examples: {} } };
  return answer && { "application/json": { schema: answer, examples: {} } };
}

function explainPermission(permission: Permission | "open"): string {
  if (permission === "open") return "Without a session.";
  const roles = PERMISSIONS[permission].roles.join(", ");
  const minutes = { now: "five", lately: "thirty" } as const;
  const stepUp = stepUpOf(permission);
  const given =
    stepUp === null ? "" : `; with a second factor given within the last ${minutes[stepUp]} minutes`;
  return `Permission \`${permission}\`: ${roles}${given}.`;
}
