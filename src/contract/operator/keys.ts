import { Type } from "#lib/type.ts";
import { KEY_SCOPES } from "#domain/key-scope.ts";
import { closed, conflict, missing, ofAccount, oneOf, orNull, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("API keys");

const lifetime = Type.Integer({ minimum: 60, maximum: 3_650 * 86_400, description: "Seconds." });
const label = Type.String({ maxLength: 255, description: "A label for people." });
const scope = oneOf(KEY_SCOPES, "A scope of the key.");
const scopes = Type.Array(scope, {
  minItems: 1,
  maxItems: KEY_SCOPES.length,
  uniqueItems: true,
  description:
    "`runs`: trigger, read and cancel runs; `sessions`: create and read credential sessions; `credentials:delete`.",
});
const key = text("The key itself. It is shown only once.");

export const listKeys = defineOperation({
  id: "listKeys",
  method: "get",
  path: "/keys",
  summary: "List API keys",
  description: "The keys themselves are never stored or returned.",
  permission: "key.read",
  accounts: "own",
  query: closed({ account: ofAccount }),
  answer: whole(
    "ApiKeys",
    closed(
      {
        id: text("The key's id (`key_...`)."),
        account: text("The account's name."),
        name: text("A label for people."),
        blueprints: orNull(Type.Array(text("A Blueprint's key."))),
        scopes: orNull(
          Type.Array(scope, { description: "null: created before there were scopes; it may do everything." }),
        ),
        created_at: time("When it was created."),
        expires_at: orNull(time("When it expires.")),
        is_expired: Type.Boolean({ description: "Whether it has expired." }),
        revoked_at: orNull(time("When it was revoked.")),
        last_used_at: orNull(time("When it was last used, to the minute.")),
        replaced_by: orNull(text("The key that replaced it in a rotation.")),
        created_by: orNull(
          text(
            "Who created it: an operator's email, a token by its label, or `the command line`; `null`: not in the audit log any more.",
          ),
        ),
      },
      { title: "ApiKey" },
    ),
  ),
});

export const createKey = defineOperation({
  id: "createKey",
  method: "post",
  path: "/keys",
  summary: "Create an API key",
  permission: "key.manage",
  body: closed({
    account: Type.String({ minLength: 1, maxLength: 200, description: "The account's name." }),
    name: Type.Optional(label),
    blueprints: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        minItems: 1,
        maxItems: 100,
        description: "Only these Blueprints; default: all.",
      }),
    ),
    scopes: Type.Optional(scopes),
    lifetime_seconds: Type.Optional(lifetime),
    test: Type.Optional(Type.Boolean({ description: "A key of test mode, `lk_test_...`; default: false." })),
  }),
  status: 201,
  answer: closed({ id: text("`key_...`"), key }, { title: "NewApiKey" }),
  failures: [missing("account or Blueprint")],
});

export const rotateKey = defineOperation({
  id: "rotateKey",
  method: "post",
  path: "/keys/{keyId}/rotate",
  summary: "Rotate an API key",
  permission: "key.manage",
  body: closed({
    overlap_seconds: Type.Integer({
      minimum: 0,
      maximum: 90 * 86_400,
      description: "How long the old key keeps working, in seconds; 0 revokes it immediately.",
    }),
    name: Type.Optional(label),
    scopes: Type.Optional(scopes),
    lifetime_seconds: Type.Optional(lifetime),
  }),
  status: 201,
  answer: closed(
    {
      id: text("`key_...`"),
      key,
      replaces: text("The old key."),
      replaced_ends_at: time("When the old key expires."),
    },
    { title: "RotatedApiKey" },
  ),
  failures: [missing("API key"), conflict("The key was rotated or revoked, or has expired.")],
});

export const revokeKey = defineOperation({
  id: "revokeKey",
  method: "post",
  path: "/keys/{keyId}/revoke",
  summary: "Revoke an API key",
  permission: "key.manage",
  failures: [missing("API key")],
});
