import * as reviews from "#actions/operators/review-records.ts";
import { noteAtReview } from "#actions/operators/review-presence.ts";
import type * as contract from "#contract/operator/reviews.ts";
import type { Handler } from "./context.ts";

const idOf = (params: Readonly<Record<string, string>>): string => params["reviewId"] ?? "";

export const getReviews: Handler<typeof contract.listReviews> = async ({ services, limit }, { query }) => ({
  items: await reviews.listInbox(services.db, query.account, limit),
});

export const getReview: Handler<typeof contract.readReview> = async ({ services }, { params }) =>
  await reviews.getReview(services.db, idOf(params));

export const getRecords: Handler<typeof contract.listReviewRecords> = async (
  { services },
  { params, query },
) => await reviews.getReviewRecords(services, idOf(params), query);

export const postApprove: Handler<typeof contract.approveReview> = async (context, { params, body }) =>
  await reviews.approveReview(context.services, context.caller, idOf(params), body);

export const postReject: Handler<typeof contract.rejectReview> = async (context, { params, body }) =>
  await reviews.rejectReview(context.services, context.caller, idOf(params), body.reason);

export const postPresence: Handler<typeof contract.noteAtReview> = async (
  { services, caller },
  { params, body },
) => await noteAtReview(services, caller, idOf(params), body.state);
