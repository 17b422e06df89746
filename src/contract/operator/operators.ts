import Type from "typebox";
import { closed, conflict, missing, orNull, role, text, time, whole } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Operators";

const password = text("The new password. It is shown only once.");
const unfit = conflict("It is the only admin, or the email is taken.");

export const listOperators = defineOperation({
  id: "listOperators",
  method: "get",
  path: "/operators",
  tag: TAG,
  summary: "List operators",
  permission: "operator.read",
  status: 200,
  answer: whole(
    "Operators",
    closed(
      {
        id: text("The operator's id (`op_...`)."),
        email: text("The email to sign in with."),
        role,
        has_second_factor: Type.Boolean({ description: "Whether signing in requires a code." }),
        single_sign_on_since: orNull(
          time("When the operator was linked to the single sign-on provider; `null`: not linked."),
        ),
        created_at: time("When the operator was created."),
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
  tag: TAG,
  summary: "Create an operator",
  permission: "operator.manage",
  body: closed({
    email: Type.String({ minLength: 3, maxLength: 241, description: "The email to sign in with." }),
    role,
  }),
  status: 201,
  answer: closed(
    { id: text("The operator's id (`op_...`)."), email: text("The email to sign in with."), password },
    { title: "NewOperator" },
  ),
  failures: [unfit],
});

export const disableOperator = defineOperation({
  id: "disableOperator",
  method: "post",
  path: "/operators/{operatorId}/disable",
  tag: TAG,
  summary: "Disable an operator",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator"), unfit],
});

export const enableOperator = defineOperation({
  id: "enableOperator",
  method: "post",
  path: "/operators/{operatorId}/enable",
  tag: TAG,
  summary: "Enable an operator",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});

export const changeRole = defineOperation({
  id: "changeRole",
  method: "post",
  path: "/operators/{operatorId}/role",
  tag: TAG,
  summary: "Change an operator's role",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  body: closed({ role }),
  status: 204,
  failures: [missing("operator"), unfit],
});

export const resetPassword = defineOperation({
  id: "resetPassword",
  method: "post",
  path: "/operators/{operatorId}/reset-password",
  tag: TAG,
  summary: "Give an operator a new password",
  description: "Their sessions end immediately.",
  permission: "operator.manage",
  status: 200,
  answer: closed({ password }, { title: "NewPassword" }),
  failures: [missing("operator")],
});

export const resetSecondFactor = defineOperation({
  id: "resetSecondFactor",
  method: "post",
  path: "/operators/{operatorId}/reset-second-factor",
  tag: TAG,
  summary: "Reset an operator's second factor",
  description: "For a lost phone. Their sessions end immediately.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});

export const unlinkOperator = defineOperation({
  id: "unlinkOperator",
  method: "post",
  path: "/operators/{operatorId}/unlink",
  tag: TAG,
  summary: "Unlink an operator from the single sign-on provider",
  description:
    "For an email address that now belongs to someone else at the provider, or for a new provider. Their sessions end immediately; the next person who signs in there with the operator's email becomes the operator.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});
