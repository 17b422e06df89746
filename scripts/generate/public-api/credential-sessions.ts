import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { SESSION_STATUSES } from "#domain/credential-session.ts";
import { limits } from "#domain/limits.ts";
import { EXAMPLE, id, keyed, nullable, openSet, strategyId, timestamp } from "#contract/fields.ts";
import {
  emptyKeyExample,
  lacksScope,
  notFound,
  refusedField,
  reportedConflict,
  tooLarge,
  unsupportedType,
} from "#contract/failures.ts";
import { json, type Operation } from "#contract/operation.ts";
import { idempotencyKey, inPath, prefer, reportedKeys } from "#contract/parameters.ts";

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
        "The URL to which the end user is redirected after submitting the form, with `session_id` appended. Its exact origin (scheme, host, port) must be on the account's allowlist; path and query are arbitrary.",
      ),
    ),
    cancel_url: Type.Optional(
      nullable(
        Type.String({ maxLength: limits.returnUrlCharactersMax, examples: [EXAMPLE.cancelUrl] }),
        "Extension: the URL to which the form's link “Cancel” leads, with `session_id` appended. The rules of `return_url` apply. The session stays `pending`.",
      ),
    ),
    metadata: Type.Optional(
      Type.Unsafe<Readonly<Record<string, string>> | null>({
        type: ["object", "null"],
        additionalProperties: { type: "string" },
        description:
          "Extension: your own references, returned with the session. At most 20 items; names have at most 40 of the characters A-Z, a-z, 0-9, `_`, `.` and `-`, values at most 500 characters. Nothing secret belongs here.",
        examples: [{ order: "4711" }],
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Unsafe<number | null>({
        type: ["integer", "null"],
        minimum: limits.sessionLifetimeMsMin / 1_000,
        description: "Extension: how long the session lasts, at most as long as the account's sessions do.",
        examples: [3_600],
      }),
    ),
  },
  {
    title: "CredentialSessionRequest",
    description: "The parameters of a new session. Other keys are ignored.",
  },
);

/** Spec, Credential session: all nine fields, always; those of extensions only if the request had them. */
export const credentialSession = Type.Object(
  {
    id: id("credentialSession", "The session's id."),
    status: openSet(
      "The session's status. `completed` means that the session has ended and the credential can be used; `expired` is terminal, too.",
      SESSION_STATUSES,
    ),
    hosted_url: nullable(
      Type.String({ format: "uri", examples: [EXAMPLE.hostedUrl] }),
      "The URL of the form for the end user; `null` once the session is no longer `pending`.",
    ),
    return_url: nullable(
      Type.String({ examples: [EXAMPLE.returnUrl] }),
      "As given when the session was created; `null` if none was given.",
    ),
    strategy_id: strategyId,
    credential_id: nullable(
      id("credential", ""),
      "The vaulted credential; `null` until `status` is `completed`, then stable. Store it only then.",
    ),
    expires_at: timestamp(
      "When the session expires: 7 days after it was created, unless the account defines another lifetime.",
      "2026-11-28T07:08:09.123Z",
    ),
    completed_at: nullable(
      timestamp("", "2026-11-21T07:10:11.120Z"),
      "When the end user submitted the form; `null` before that.",
    ),
    created_at: timestamp("When the session was created."),
    metadata: Type.Optional(
      keyed<string>(
        Type.String(),
        "Extension: as given when the session was created. Only present if it was.",
      ),
    ),
    cancel_url: Type.Optional(
      Type.String({
        description: "Extension: as given when the session was created. Only present if it was.",
        examples: [EXAMPLE.cancelUrl],
      }),
    ),
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

export const completed: CredentialSessionBody = {
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
    "Creates a hosted form that collects an end user's credentials and stores them encrypted in the vault. Send the end user to `hosted_url`, then poll the session until it is `completed`.",
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
      description: "The `pending` session.",
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
        "The `Idempotency-Key` header or the body is invalid: not a JSON object, nested more than 64 levels deep, a wrong type, an unknown `strategy_id`, or a `return_url` that is not on the allowlist. `details[].field` names the field.",
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
    "Poll this every 2 seconds until the status is terminal: after the redirect to `return_url`, or while the form is open. Keep polling on an unknown status; `completed` will always mean that the session has ended and the credential can be used.",
  parameters: [inPath("id", "The session's id (`sess_...`).", EXAMPLE.credentialSession)],
  answers: [
    {
      status: 200,
      description: "The session. Its status is `expired` from the moment of `expires_at`.",
      content: json(credentialSession, {
        completed,
        pending,
        expired: { ...pending, status: "expired", hosted_url: null },
      }),
    },
  ],
  failures: [
    lacksScope("sessions"),
    notFound("Credential session", "The API key's account has no such session."),
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/credential-sessions/$SESSION_ID" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
