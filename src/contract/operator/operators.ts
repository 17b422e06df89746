import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { closed, conflict, missing, orNull, role, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Operators");

const accountNames = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  minItems: 1,
  maxItems: limits.operatorAccountsMax,
  description: "The accounts' names; `null`: all, also later ones.",
});

const password = text("The new password. It is shown only once.");
const unfit = conflict("It is the only admin of all accounts, or the email is taken.");

export const listOperators = defineOperation({
  id: "listOperators",
  method: "get",
  path: "/operators",
  summary: "List operators",
  permission: "operator.read",
  answer: whole(
    "Operators",
    closed(
      {
        id: text("The operator's id (`op_...`)."),
        email: text("The email to sign in with."),
        role,
        accounts: orNull(
          Type.Array(text("An account's name."), {
            description: "The accounts that the operator is limited to; `null`: not limited.",
          }),
        ),
        has_second_factor: Type.Boolean({ description: "Whether signing in requires a code." }),
        single_sign_on_since: orNull(
          time("When the operator was linked to the single sign-on provider; `null`: not linked."),
        ),
        created_at: time("When the operator was created."),
        signed_in_at: orNull(time("When the operator last signed in; `null`: never.")),
        disabled_at: orNull(time("When the operator was disabled.")),
      },
      { title: "Operator" },
    ),
  ),
});

export const createOperator = defineOperation({
  id: "createOperator",
  method: "post",
  path: "/operators",
  summary: "Create an operator",
  permission: "operator.manage",
  body: closed({
    email: Type.String({ minLength: 3, maxLength: 241, description: "The email to sign in with." }),
    role,
    accounts: Type.Optional({
      ...accountNames,
      description: "The accounts' names that the operator is limited to; default: all, also later ones.",
    }),
  }),
  status: 201,
  answer: closed(
    { id: text("The operator's id (`op_...`)."), email: text("The email to sign in with."), password },
    { title: "NewOperator" },
  ),
  failures: [missing("account"), unfit],
});

export const disableOperator = defineOperation({
  id: "disableOperator",
  method: "post",
  path: "/operators/{operatorId}/disable",
  summary: "Disable an operator",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  failures: [missing("operator"), unfit],
});

export const enableOperator = defineOperation({
  id: "enableOperator",
  method: "post",
  path: "/operators/{operatorId}/enable",
  summary: "Enable an operator",
  permission: "operator.manage",
  failures: [missing("operator")],
});

export const changeRole = defineOperation({
  id: "changeRole",
  method: "post",
  path: "/operators/{operatorId}/role",
  summary: "Change an operator's role",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  body: closed({ role }),
  failures: [missing("operator"), unfit],
});

export const changeOperatorAccounts = defineOperation({
  id: "changeOperatorAccounts",
  method: "post",
  path: "/operators/{operatorId}/accounts",
  summary: "Limit an operator to accounts",
  description:
    "Everything that the operator reads, changes and is told is then of these accounts, and others are as if they did not exist. Operators, tokens and the system are of no account. Their sessions end immediately.",
  permission: "operator.manage",
  body: closed({
    accounts: orNull(accountNames),
  }),
  failures: [missing("operator"), missing("account"), unfit],
});

export const resetPassword = defineOperation({
  id: "resetPassword",
  method: "post",
  path: "/operators/{operatorId}/reset-password",
  summary: "Give an operator a new password",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  answer: closed({ password }, { title: "NewPassword" }),
  failures: [missing("operator")],
});

export const resetSecondFactor = defineOperation({
  id: "resetSecondFactor",
  method: "post",
  path: "/operators/{operatorId}/reset-second-factor",
  summary: "Reset an operator's second factor",
  description: "For a lost phone. Their sessions end immediately.",
  permission: "operator.manage",
  failures: [missing("operator")],
});

export const unlinkOperator = defineOperation({
  id: "unlinkOperator",
  method: "post",
  path: "/operators/{operatorId}/unlink",
  summary: "Unlink an operator from the single sign-on provider",
  description:
    "For an email address that now belongs to someone else at the provider, or for a new provider. Their sessions end immediately; the next person who signs in there with the operator's email becomes the operator.",
  permission: "operator.manage",
  failures: [missing("operator")],
});
