import type * as events from "#contract/operator/events.ts";
import type * as reviews from "#contract/operator/reviews.ts";
import type * as runs from "#contract/operator/runs.ts";
import type * as session from "#contract/operator/session.ts";
import type * as system from "#contract/operator/system.ts";
import { endpoint } from "./request.ts";

/** The operations that pages use: one line each. A method or a path that is not the contract's does not compile. */
export const signIn = endpoint<typeof session.signIn>("post", "/session");
export const signOut = endpoint<typeof session.signOut>("delete", "/session");
export const stepUp = endpoint<typeof session.stepUp>("post", "/session/step-up");
export const readMe = endpoint<typeof session.readMe>("get", "/me");
export const beginSecondFactor = endpoint<typeof session.beginSecondFactor>("post", "/me/second-factor");
export const confirmSecondFactor = endpoint<typeof session.confirmSecondFactor>(
  "post",
  "/me/second-factor/confirm",
);
export const listOwnSessions = endpoint<typeof session.listOwnSessions>("get", "/me/sessions");
export const endOwnSession = endpoint<typeof session.endOwnSession>("delete", "/me/sessions/{sessionId}");
export const changePassword = endpoint<typeof session.changePassword>("post", "/me/password");

export const listRuns = endpoint<typeof runs.listRuns>("get", "/runs");
export const readRun = endpoint<typeof runs.readRun>("get", "/runs/{runId}");
export const cancelRun = endpoint<typeof runs.cancelRun>("post", "/runs/{runId}/cancel");
export const purgeRun = endpoint<typeof runs.purgeRun>("post", "/runs/{runId}/purge");
export const readRunGraph = endpoint<typeof runs.readRunGraph>("get", "/runs/{runId}/graph");
export const listResultRecords = endpoint<typeof runs.listResultRecords>(
  "get",
  "/runs/{runId}/results/{resultKey}/records",
);
export const downloadResult = endpoint<typeof runs.downloadResult>(
  "get",
  "/runs/{runId}/results/{resultKey}/download",
);

export const watchChanges = endpoint<typeof events.watchChanges>("get", "/events");
export const readOverview = endpoint<typeof system.readOverview>("get", "/overview");

export const listReviews = endpoint<typeof reviews.listReviews>("get", "/reviews");
export const readReview = endpoint<typeof reviews.readReview>("get", "/reviews/{reviewId}");
export const listReviewRecords = endpoint<typeof reviews.listReviewRecords>(
  "get",
  "/reviews/{reviewId}/records",
);
export const approveReview = endpoint<typeof reviews.approveReview>("post", "/reviews/{reviewId}/approve");
export const rejectReview = endpoint<typeof reviews.rejectReview>("post", "/reviews/{reviewId}/reject");
