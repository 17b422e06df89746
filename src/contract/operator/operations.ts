import * as credentials from "./credentials.ts";
import type { OperatorOperation } from "./operation.ts";
import * as operators from "./operators.ts";
import * as keys from "./keys.ts";
import * as reviews from "./reviews.ts";
import * as runs from "./runs.ts";
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
  runs.listRuns,
  runs.readRun,
  runs.cancelRun,
  runs.purgeRun,
  reviews.listReviews,
  reviews.readReview,
  reviews.listReviewRecords,
  reviews.approveReview,
  reviews.rejectReview,
  credentials.listCredentials,
  credentials.unlockCredential,
  credentials.deleteCredential,
  credentials.listCredentialSessions,
  keys.listKeys,
  keys.createKey,
  keys.rotateKey,
  keys.revokeKey,
];
