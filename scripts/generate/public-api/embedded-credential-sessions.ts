import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { SESSION_STATUSES } from "#domain/credential-session.ts";
import { limits } from "#domain/limits.ts";
import { EXAMPLE, id, keyed, nullable, openSet, timestamp } from "#contract/fields.ts";
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

const seconds = (ms: number): number => ms / 1_000;
const ORIGIN = "https://app.example.com";

/** An extension of ours (docs/decisions/0012), with the rules of credential sessions. */
const request = Type.Object(
  {
    origin: Type.String({
      maxLength: limits.originCharactersMax,
      description:
        "Scheme, host and port of the page that embeds the frame, which must be one of the account's origins for embedding. No other page can embed it.",
      examples: [ORIGIN],
    }),
    blueprint_keys: Type.Optional(
      Type.Unsafe<readonly string[] | null>({
        type: ["array", "null"],
        items: { type: "string" },
        minItems: 1,
        maxItems: limits.embeddedBlueprintsMax,
        description:
          "The Blueprints that the end user can choose from, in this order. With a single one, the frame starts with its form. Default: all Blueprints of the account that need a credential.",
        examples: [[EXAMPLE.blueprintKey]],
      }),
    ),
    name: Type.Optional(
      nullable(
        Type.String({ maxLength: limits.nameCharactersMax, examples: ["User 1234"] }),
        "Label of the vaulted credentials in the operator dashboard. Never returned. At most 255 characters, without U+0000.",
      ),
    ),
    locale: Type.Optional(
      nullable(
        Type.String({ maxLength: limits.localeCharactersMax, examples: ["de"] }),
        "The language of the frame, as a BCP 47 tag; an unsupported one is ignored. Default: the browser's language.",
      ),
    ),
    expires_in_seconds: Type.Optional(
      Type.Unsafe<number | null>({
        type: ["integer", "null"],
        minimum: seconds(limits.embeddedLifetimeMsMin),
        maximum: seconds(limits.embeddedLifetimeMsMax),
        description: "How long the frame can be used. Default: half an hour.",
        examples: [seconds(limits.embeddedLifetimeMs)],
      }),
    ),
  },
  {
    title: "EmbeddedCredentialSessionRequest",
    description: "The parameters of a new embedded session. Other keys are ignored.",
  },
);

const fields = {
  id: id("embeddedCredentialSession", "The session's id."),
  status: openSet(
    "The session's status. `completed` means that the session has ended and all credentials can be used; `expired` is terminal, too.",
    SESSION_STATUSES,
  ),
  embed_url: nullable(
    Type.String({ format: "uri", examples: [`https://connect.example.com/embed/v1/ecs_0VbbSVh1Wn6T`] }),
    "The URL that the widget embeds, which contains no secret. `null` once the session is no longer `pending`.",
  ),
  origin: Type.String({
    description: "The origin of the only page that may embed the frame.",
    examples: [ORIGIN],
  }),
  blueprint_keys: Type.Array(Type.String({ examples: [EXAMPLE.blueprintKey] }), {
    description: "The Blueprints to choose from.",
  }),
  selected_blueprint_key: nullable(
    Type.String({ examples: [EXAMPLE.blueprintKey] }),
    "The chosen Blueprint; `null` until one is chosen.",
  ),
  credential_id: nullable(
    id("credential", ""),
    "The credential for the Blueprint's first or only slot; `null` until `status` is `completed`, then stable.",
  ),
  credential_ids: keyed<string>(
    id("credential", "A credential."),
    "The vaulted credentials, by slot. Complete once `status` is `completed`; those of an `expired` session can be deleted.",
  ),
  expires_at: timestamp(
    "When the session expires: half an hour after it was created, unless another lifetime was requested.",
    "2026-11-21T07:38:09.123Z",
  ),
  completed_at: nullable(
    timestamp("", "2026-11-21T07:10:11.120Z"),
    "When the last credential was vaulted; `null` before that.",
  ),
  created_at: timestamp("When the session was created."),
};

export const embeddedSession = Type.Object(fields, {
  title: "EmbeddedCredentialSession",
  description: "A short-lived flow in an embedded frame that collects the credentials for one Blueprint.",
});

const created = Type.Object(
  {
    ...fields,
    client_token: Type.String({
      description:
        "The token that your page passes to the widget and must not disclose to anyone else. Only returned here, and in replays of this answer.",
      examples: ["CLIENT_TOKEN"],
    }),
  },
  {
    title: "CreatedEmbeddedCredentialSession",
    description: "The new session, with the token that opens it.",
  },
);

export type EmbeddedSessionBody = Static<typeof embeddedSession>;

const pending: EmbeddedSessionBody = {
  id: EXAMPLE.embeddedCredentialSession,
  status: "pending",
  embed_url: `https://connect.example.com/embed/v1/${EXAMPLE.embeddedCredentialSession}`,
  origin: ORIGIN,
  blueprint_keys: [EXAMPLE.blueprintKey],
  selected_blueprint_key: EXAMPLE.blueprintKey,
  credential_id: null,
  credential_ids: {},
  expires_at: "2026-11-21T07:38:09.123Z",
  completed_at: null,
  created_at: "2026-11-21T07:08:09.123Z",
};

export const completed: EmbeddedSessionBody = {
  ...pending,
  status: "completed",
  embed_url: null,
  credential_id: EXAMPLE.credential,
  credential_ids: { portal: EXAMPLE.credential },
  completed_at: "2026-11-21T07:10:11.120Z",
};

const TAG = "Embedded credential sessions";

export const createEmbeddedSession: Operation = {
  id: "createEmbeddedCredentialSession",
  method: "post",
  path: "/embedded-credential-sessions",
  tag: TAG,
  summary: "Create an embedded credential session",
  description:
    "Starts a flow that collects credentials in a frame on your own page: the end user chooses a Blueprint and enters the credentials that it needs. Pass `client_token` and `embed_url` to the widget. When it reports `completed`, read the session on your server and store the ids from the answer.",
  parameters: [idempotencyKey, prefer],
  body: {
    required: true,
    content: json(request, {
      session: { origin: ORIGIN, blueprint_keys: [EXAMPLE.blueprintKey], locale: "de" },
    }),
  },
  answers: [
    {
      status: 201,
      description: "The `pending` session, with its client token.",
      headers: ["Idempotent-Replay", ...reportedKeys],
      content: json(created, { pending: { ...pending, client_token: "CLIENT_TOKEN" } }),
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
        "The `Idempotency-Key` header or the body is invalid: not a JSON object, a wrong type, an `origin` that is not one of the account's, an unknown Blueprint, or one that needs no credential. `details[].field` names the field.",
      examples: {
        origin: refusedField("origin", "`origin` is not one of this account's origins for embedding."),
        blueprint_keys: refusedField(
          "blueprint_keys.0",
          "`blueprint_keys.0` is not a Blueprint of this account.",
        ),
        idempotency_key: emptyKeyExample,
      },
    },
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/embedded-credential-sessions" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: embed-user-1234" \\
  -d '{ "origin": "'"$ORIGIN"'",
        "blueprint_keys": ["'"$BLUEPRINT_KEY"'"] }'`,
  },
};

export const readEmbeddedSession: Operation = {
  id: "readEmbeddedCredentialSession",
  method: "get",
  path: "/embedded-credential-sessions/{id}",
  tag: TAG,
  summary: "Read an embedded credential session",
  description:
    "Don't rely on what a browser reports: read the session on your server when the widget reports `completed`, and store `credential_id` or `credential_ids` only if `status` is `completed`.",
  parameters: [inPath("id", "The session's id (`ecs_...`).", EXAMPLE.embeddedCredentialSession)],
  answers: [
    {
      status: 200,
      description: "The session. Its status is `expired` from the moment of `expires_at`.",
      content: json(embeddedSession, {
        completed,
        pending,
        expired: { ...pending, status: "expired", embed_url: null },
      }),
    },
  ],
  failures: [
    lacksScope("sessions"),
    notFound("Embedded credential session", "The API key's account has no such session."),
  ],
  curl: {
    curl: `curl -sS "$BASE_URL/embedded-credential-sessions/$EMBEDDED_SESSION_ID" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
