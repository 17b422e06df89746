import type { OperatorOperation } from "./operation.ts";
import * as operators from "./operators.ts";
import * as session from "./session.ts";

/** Every operation of the operator API, in the order of its document. */
export const OPERATOR_OPERATIONS: readonly OperatorOperation[] = [
  session.signIn,
  session.signOut,
  session.stepUp,
  session.readMe,
  session.listOwnSessions,
  session.endOwnSession,
  session.changePassword,
  session.beginSecondFactor,
  session.confirmSecondFactor,
  session.renewRecoveryCodes,
  operators.listOperators,
  operators.createOperator,
  operators.disableOperator,
  operators.enableOperator,
  operators.changeRole,
  operators.resetPassword,
  operators.resetSecondFactor,
];
