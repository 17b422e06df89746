import Type from "typebox";
import { closed, conflict, missing, orNull, role, text, time, whole } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Operators";

const password = text("The new password. Shown this once.");
const unfit = conflict("It is the only admin, or the name is taken.");

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
        email: text("The sign-in name."),
        role,
        has_second_factor: Type.Boolean({ description: "Whether a sign-in wants a code." }),
        single_sign_on_since: orNull(
          time(
            "When the operator became known at the provider of single sign-on; `null`: by password alone.",
          ),
        ),
        created_at: time("When the operator was made."),
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
  summary: "Make an operator",
  permission: "operator.manage",
  body: closed({
    email: Type.String({ minLength: 3, maxLength: 241, description: "The sign-in name." }),
    role,
  }),
  status: 201,
  answer: closed(
    { id: text("The operator's id (`op_...`)."), email: text("The sign-in name."), password },
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
  description: "Their sessions end at once.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator"), unfit],
});

export const enableOperator = defineOperation({
  id: "enableOperator",
  method: "post",
  path: "/operators/{operatorId}/enable",
  tag: TAG,
  summary: "Let an operator sign in again",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});

export const changeRole = defineOperation({
  id: "changeRole",
  method: "post",
  path: "/operators/{operatorId}/role",
  tag: TAG,
  summary: "Change what an operator may do",
  description: "Their sessions end at once.",
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
  description: "Their sessions end at once.",
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
  summary: "Take an operator's second factor away",
  description: "For a lost phone. Their sessions end at once.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});

export const unlinkOperator = defineOperation({
  id: "unlinkOperator",
  method: "post",
  path: "/operators/{operatorId}/unlink",
  tag: TAG,
  summary: "Forget who an operator is at the provider of single sign-on",
  description:
    "For an address of mail that has passed to somebody else there, or another provider. Their sessions end at once; who signs in there with the operator's address next is the operator.",
  permission: "operator.manage",
  status: 204,
  failures: [missing("operator")],
});
