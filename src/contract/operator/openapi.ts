import { COMMON_FAILURES, errorExample } from "#contract/failures.ts";
import { DEFAULT_PUBLIC_URL, writeDocument } from "#contract/openapi.ts";
import type { OpenApiDocument } from "#contract/openapi-types.ts";
import type { Failure } from "#contract/operation.ts";
import { toOperation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operations.ts";

const DESCRIPTION = `What operators see and do: the API behind the dashboard.

- Sign in with \`POST /session\`; the cookie that it sets is the session. A page can't read it.
- Everything that changes something wants the header \`X-CSRF-Token\` with the \`csrf_token\` of \`GET /me\`, and comes from the service's own origin.
- Every operation names its permission; a role that does not have it gets 403.
- Every failure has the single top-level key \`error\`.
- Lists give \`next_cursor\`; another parameter than those named here is a 422.`;

const OWN_FAILURES: readonly Failure[] = [
  {
    status: 401,
    description: "Nobody is signed in, or the session is over. Of a sign-in: what was given is not right.",
    examples: {
      signed_out: errorExample(
        "authentication_error",
        "You are not signed in, or your session is over. Sign in.",
      ),
    },
  },
  {
    status: 403,
    description:
      "The role may not do this; or something must be done first, which the detail's code says: `second_factor_missing`, `step_up_required`, `csrf`.",
    examples: {
      role: errorExample("authorization_error", "The role viewer may not do this (run.cancel)."),
    },
  },
  {
    status: 422,
    description: "A parameter or a member of the body is not what is wanted; each is named.",
    examples: {
      field: errorExample("validation_error", "`limit` must be a whole number from 1 to 200.", [
        { code: "invalid_input_data", field: "limit" },
      ]),
    },
  },
];

/** `openapi/operator-openapi.json`: the operator API of a service that is reached at `publicUrl`. */
export function operatorDocument(publicUrl: string = DEFAULT_PUBLIC_URL): OpenApiDocument {
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
    },
    // Without a session, and under the base URL all the same.
    areOpenOutside: false,
  });
}
