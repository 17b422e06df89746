import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { closed, conflict, missing, orNull, role, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Operator tokens");

const SECOND_MS = 1_000;

export const listTokens = defineOperation({
  id: "listTokens",
  method: "get",
  path: "/tokens",
  summary: "List operator tokens",
  description: "Newest first. The tokens themselves are never stored or returned.",
  permission: "token.read",
  answer: whole(
    "OperatorTokens",
    closed(
      {
        id: text("The token's id (`tok_...`)."),
        name: text("A label for people."),
        role,
        accounts: orNull(
          Type.Array(text("An account's name."), { description: "Limited to these; `null`: not limited." }),
        ),
        created_by: orNull(text("The email of the operator who created it; `null`: the command line.")),
        acts_for: orNull(
          text(
            "The email of the operator for whom it acts (`latchkey login`): it ends when they are disabled, or lose the token's role; `null`: it is a program's own.",
          ),
        ),
        created_at: time("When it was created."),
        expires_at: time("When it expires."),
        is_expired: Type.Boolean({ description: "Whether it has expired." }),
        revoked_at: orNull(time("When it was revoked.")),
        last_used_at: orNull(time("When it was last used, to the minute.")),
      },
      { title: "OperatorToken" },
    ),
  ),
});

export const createToken = defineOperation({
  id: "createToken",
  method: "post",
  path: "/tokens",
  summary: "Create an operator token",
  description:
    "Programs send it as `Authorization: Bearer …` and have its role, without a second factor, except for what only a person may do (403 with `person_required`).",
  permission: "token.manage",
  body: closed({
    name: Type.String({ minLength: 1, maxLength: 255, description: "A label for people." }),
    role,
    accounts: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        minItems: 1,
        maxItems: limits.operatorAccountsMax,
        description: "The accounts' names that it is limited to; default: all.",
      }),
    ),
    lifetime_seconds: Type.Integer({
      minimum: 60,
      maximum: limits.operatorTokenMsMax / SECOND_MS,
      description: "How long it works, in seconds.",
    }),
  }),
  status: 201,
  failures: [missing("account")],
  answer: closed(
    {
      id: text("The token's id (`tok_...`)."),
      token: text("The token itself. It is shown only once."),
      expires_at: time("When it expires."),
    },
    { title: "NewOperatorToken" },
  ),
});

export const endOwnToken = defineOperation({
  id: "endOwnToken",
  method: "delete",
  path: "/tokens/own",
  summary: "Revoke the operator token of this request",
  description: "For `latchkey logout`. It takes effect with the next request.",
  permission: "token.end",
  accounts: "none",
  failures: [conflict("The request has no operator token.")],
});

export const revokeToken = defineOperation({
  id: "revokeToken",
  method: "post",
  path: "/tokens/{tokenId}/revoke",
  summary: "Revoke an operator token",
  description: "It takes effect with the next request.",
  permission: "token.manage",
  failures: [missing("operator token")],
});
