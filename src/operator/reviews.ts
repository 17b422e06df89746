import {
  approveReview,
  listInbox,
  lookAtRecords,
  lookAtReview,
  rejectReview,
} from "#actions/operators/review-records.ts";
import type * as contract from "#contract/operator/reviews.ts";
import type { Handler } from "./context.ts";

const idOf = (params: Readonly<Record<string, string>>): string => params["reviewId"] ?? "";

export const getReviews: Handler<typeof contract.listReviews> = async ({ services }, { query }) => ({
  items: await listInbox(services.db, query.account),
});

export const getReview: Handler<typeof contract.readReview> = async ({ services }, { params }) =>
  await lookAtReview(services.db, idOf(params));

export const getRecords: Handler<typeof contract.listReviewRecords> = async (
  { services },
  { params, query },
) => await lookAtRecords(services, idOf(params), query);

export const postApprove: Handler<typeof contract.approveReview> = async (context, { params, body }) =>
  await approveReview(context.services, context.caller, idOf(params), body);

export const postReject: Handler<typeof contract.rejectReview> = async (context, { params, body }) =>
  await rejectReview(context.services, context.caller, idOf(params), body.reason);
