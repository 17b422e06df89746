import Type, { type Static } from "typebox";
import { SESSION_STATUSES } from "#domain/credential-session.ts";
import { limits } from "#domain/limits.ts";
import { EXAMPLE, id, nullable, openSet, strategyId, timestamp } from "./fields.ts";
import {
  emptyKeyExample,
  lacksScope,
  notFound,
  refusedField,
  reportedConflict,
  tooLarge,
  unsupportedType,
} from "./failures.ts";
import { json, type Operation } from "./operation.ts";
import { idempotencyKey, inPath, prefer, reportedKeys } from "./parameters.ts";

/** Spec, POST /credential-sessions. Unknown keys are ignored, `null` is an omitted field (docs/api.md#credential-sessions). */
const credentialSessionRequest = Type.Object(
  {
    strategy_id: strategyId,
    name: Type.Optional(
      nullable(
        Type.String({ maxLength: limits.nameCharactersMax, examples: ["Northwind of user 1234"] }),
        "Label of the vaulted credential in the operator dashboard. Never returned. At most 255 characters, without U+0000.",
      ),
    ),
    return_url: Type.Optional(
      nullable(
        Type.String({ maxLength: limits.returnUrlCharactersMax, examples: [EXAMPLE.returnUrl] }),
        "Where the end user is sent after the submission, with `session_id` appended. Its exact origin (scheme, host, port) must be on the account's allowlist; path and query are free.",
      ),
    ),
  },
  {
    title: "CredentialSessionRequest",
    description: "What a session is created with. Other keys are ignored.",
  },
);

/** Spec, Credential session: all nine fields, always. */
const credentialSession = Type.Object(
  {
    id: id("credentialSession", "The session's id."),
    status: openSet(
      "Where the session stands. `completed` means terminal and usable; `expired` is terminal.",
      SESSION_STATUSES,
    ),
    hosted_url: nullable(
      Type.String({ format: "uri", examples: [EXAMPLE.hostedUrl] }),
      "The form for the end user; `null` as soon as the session is no longer `pending`.",
    ),
    return_url: nullable(
      Type.String({ examples: [EXAMPLE.returnUrl] }),
      "As given at the creation; `null` when none was given.",
    ),
    strategy_id: strategyId,
    credential_id: nullable(
      id("credential", ""),
      "The vaulted credential; `null` until `status` is `completed`, then stable. Store it only then.",
    ),
    expires_at: timestamp(
      "When the form closes: 7 days after the creation, unless the account says otherwise.",
      "2026-11-28T07:08:09.123Z",
    ),
    completed_at: nullable(
      timestamp("", "2026-11-21T07:10:11.120Z"),
      "When the end user submitted the form; `null` until then.",
    ),
    created_at: timestamp("When the session was created."),
  },
  {
    title: "CredentialSession",
    description: "A short-lived hosted form that collects an end user's credentials.",
  },
);

export type CredentialSessionBody = Static<typeof credentialSession>;

const pending: CredentialSessionBody = {
  id: EXAMPLE.credentialSession,
  status: "pending",
  hosted_url: EXAMPLE.hostedUrl,
  return_url: EXAMPLE.returnUrl,
  strategy_id: EXAMPLE.strategy,
  credential_id: null,
  expires_at: "2026-11-28T07:08:09.123Z",
  completed_at: null,
  created_at: "2026-11-21T07:08:09.123Z",
};

const completed: CredentialSessionBody = {
  ...pending,
  status: "completed",
  hosted_url: null,
  credential_id: EXAMPLE.credential,
  completed_at: "2026-11-21T07:10:11.120Z",
};

const TAG = "Credential sessions";

export const createCredentialSession: Operation = {
  id: "createCredentialSession",
  method: "post",
  path: "/credential-sessions",
  tag: TAG,
  summary: "Create a credential session",
  description:
    "Creates a hosted form that collects an end user's credentials, encrypts them and vaults them. Send the end user to `hosted_url`, then read the session until it is `completed`.",
  parameters: [idempotencyKey, prefer],
  body: {
    required: true,
    content: json(credentialSessionRequest, {
      session: {
        strategy_id: EXAMPLE.strategy,
        name: "Northwind of user 1234",
        return_url: EXAMPLE.returnUrl,
      },
    }),
  },
  answers: [
    {
      status: 201,
      description: "The session, `pending`.",
      headers: ["Idempotent-Replay", ...reportedKeys],
      content: json(credentialSession, { pending }),
    },
  ],
  failures: [
    lacksScope("sessions"),
    reportedConflict,
    tooLarge("The body has more than 1 MiB or more than 250,000 values."),
    unsupportedType("The body is not `application/json` in UTF-8.", "application/json"),
    {
      status: 422,
      headers: reportedKeys,
      description:
        "The `Idempotency-Key` header or the body is invalid: no JSON object, nested more than 64 levels deep, a wrong type, an unknown `strategy_id`, a `return_url` off the allowlist. `details[].field` names the field.",
      examples: {
        strategy_id: refusedField(
          "strategy_id",
          "`strategy_id` is not an authentication strategy of this account.",
        ),
        return_url: refusedField(
          "return_url",
          "The origin (scheme, host and port) of `return_url` is not on this account's allowlist.",
        ),
        idempotency_key: emptyKeyExample,
      },
    },
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/credential-sessions" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: connect-user-1234" \\
  -d '{ "strategy_id": "'"$STRATEGY_ID"'",
        "name": "Northwind of user 1234" }'`,
  },
};

export const readCredentialSession: Operation = {
  id: "readCredentialSession",
  method: "get",
  path: "/credential-sessions/{id}",
  tag: TAG,
  summary: "Read a credential session",
  description:
    "Poll it every 2 seconds while its status is not terminal: right after the redirect to `return_url`, or while the form is open. Keep polling on any status that you don't know; `completed` will always mean terminal and usable.",
  parameters: [inPath("id", "The session's id (`sess_...`).", EXAMPLE.credentialSession)],
  answers: [
    {
      status: 200,
      description: "The session. `expired` is shown from the instant `expires_at` is reached.",
      content: json(credentialSession, {
        completed,
        pending,
        expired: { ...pending, status: "expired", hosted_url: null },
      }),
    },
  ],
  failures: [
    lacksScope("sessions"),
    notFound("Credential session", "There is no such session in the account of the key."),
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/credential-sessions/$SESSION_ID" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
