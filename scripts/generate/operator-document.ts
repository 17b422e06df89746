import { DOCUMENT_URL } from "#api/openapi-routes.ts";
import { COMMON_FAILURES, errorExample } from "#contract/failures.ts";
import type { Failure, Operation, Parameter } from "#contract/operation.ts";
import { requiredOf, type OperatorOperation } from "#contract/operator/operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import { isPersonal, PERMISSIONS, stepUpOf, type Permission } from "#domain/operator.ts";
import { writeDocument } from "./openapi-document.ts";
import type { OpenApiDocument } from "./openapi-types.ts";

const DESCRIPTION = `What operators see and do: the API behind the dashboard.

- Sign in with \`POST /session\`; the cookie that it sets is the session. Scripts can't read it.
- Programs send an operator token instead: \`Authorization: Bearer lko_...\`. They need no \`X-CSRF-Token\`.
- Every request that changes something needs the header \`X-CSRF-Token\` with the \`csrf_token\` of \`GET /me\`, and must come from the service's own origin.
- Every operation names its permission; a role that does not have it gets 403.
- Every failure has the single top-level key \`error\`.
- Lists return \`next_cursor\`. Unknown parameters are answered with 422.`;

const OWN_FAILURES: readonly Failure[] = [
  {
    status: 401,
    description:
      "Nobody is signed in, or the session has expired. For a sign-in: the email, password or code is wrong.",
    examples: {
      signed_out: errorExample(
        "authentication_error",
        "You are not signed in, or your session has expired. Sign in.",
      ),
    },
  },
  {
    status: 403,
    description:
      "The role has no permission, or something else is required first; see the detail's code: `second_factor_missing`, `step_up_required`, `person_required`, `csrf`.",
    examples: {
      role: errorExample(
        "authorization_error",
        "The role viewer does not have this permission (run.cancel).",
      ),
    },
  },
  {
    status: 422,
    description: "A parameter or a field of the body is invalid; each one is named.",
    examples: {
      field: errorExample("validation_error", "`limit` must be a whole number from 1 to 200.", [
        { code: "invalid_input_data", field: "limit" },
      ]),
    },
  },
];

/** `openapi/operator-openapi.json`: the operator API of a service that is reached at `publicUrl`. */
export function operatorDocument(publicUrl: string = DOCUMENT_URL): OpenApiDocument {
  const shared = COMMON_FAILURES.filter(({ status }) => !OWN_FAILURES.some((own) => own.status === status));
  return writeDocument({
    title: "Latchkey operator API",
    summary: "What operators see and do",
    description: DESCRIPTION,
    baseUrl: `${publicUrl}/operator/v1`,
    publicUrl,
    tags: [...new Set(OPERATOR_OPERATIONS.map(({ tag }) => tag))].map((name) => ({
      name,
      description: name,
    })),
    operations: OPERATOR_OPERATIONS.map(toOperation),
    sharedParameters: {},
    commonFailures: [...OWN_FAILURES, ...shared],
    headers: ["X-Request-Id", "Cache-Control", "Retry-After"],
    isCounted: false,
    security: {
      session: {
        type: "apiKey",
        in: "cookie",
        name: "__Host-latchkey_operator",
        description:
          "Set by `POST /session` and `POST /session/oidc`. Without TLS its name is `latchkey_operator`.",
      },
      token: {
        type: "http",
        scheme: "bearer",
        description:
          "An operator token (`lko_...`), for programs. It has its role's permissions, but not those that need a person.",
      },
    },
    // Without a session, and under the base URL all the same.
    areOpenOutside: false,
    samplesOf: () => [],
  });
}

const PARAMETERS: Readonly<Record<string, string>> = {
  runId: "The run's id (`run_...`) or its `run_key` (a UUID).",
  sessionId: "The session's id (`ops_...`).",
  operatorId: "The operator's id (`op_...`).",
  tokenId: "The operator token's id (`tok_...`).",
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

/** As the document's writer takes it. */
function toOperation(operation: OperatorOperation): Operation {
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
  const person = isPersonal(permission) ? " No operator token has it." : "";
  return `Permission \`${permission}\`: ${roles}${given}.${person}`;
}
