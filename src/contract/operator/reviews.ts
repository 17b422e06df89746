import Type from "typebox";
import { limits } from "#domain/limits.ts";
import {
  closed,
  conflict,
  count,
  missing,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
  whole,
} from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Reviews";

const STATUSES = ["open", "approved", "rejected", "timed_out", "closed"] as const;

const review = closed(
  {
    id: text("The review's id (`rev_...`)."),
    account: text("The account's name."),
    run_id: text("The run that waits."),
    blueprint: text("The Blueprint's key."),
    node: text("The node that asks."),
    title: text("What is asked."),
    instructions: orNull(text("How to decide.")),
    editable: Type.Boolean({ description: "Whether records may be edited." }),
    records_total: count("Its records."),
    records_valid: count("Those without errors."),
    created_at: time("When it began to wait."),
    expires_at: orNull(time("When its time is over.")),
    on_timeout: orNull(text("What happens then: fail or approve.")),
    status: oneOf(STATUSES, "Where it stands."),
    decided_by: orNull(text("Who decided: an operator's email, `cli`, or `timeout` when its time was over.")),
    decided_at: orNull(time("When.")),
    reason: orNull(text("Why.")),
    edited: count("Records that were edited."),
    excluded: count("Records that were left out."),
  },
  { title: "Review" },
);

export const listReviews = defineOperation({
  id: "listReviews",
  method: "get",
  path: "/reviews",
  tag: TAG,
  summary: "List what waits for a decision, oldest first",
  description: "At most 1,000.",
  permission: "review.read",
  query: closed({
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
  }),
  status: 200,
  answer: whole("Reviews", review),
});

export const readReview = defineOperation({
  id: "readReview",
  method: "get",
  path: "/reviews/{reviewId}",
  tag: TAG,
  summary: "Read a review",
  permission: "review.read",
  status: 200,
  answer: review,
  failures: [missing("review")],
});

export const listReviewRecords = defineOperation({
  id: "listReviewRecords",
  method: "get",
  path: "/reviews/{reviewId}/records",
  tag: TAG,
  summary: "List a review's records as they came to it",
  permission: "review.records",
  query: closed({ ...paging }),
  status: 200,
  answer: page(
    "ReviewRecords",
    closed(
      {
        ordinal: count("Its place."),
        data: Type.Unknown({ description: "The record." }),
        errors: Type.Array(Type.Unknown(), { description: "What is wrong with it." }),
        is_valid: Type.Boolean({ description: "Whether nothing is." }),
      },
      { title: "ReviewRecord" },
    ),
  ),
  failures: [missing("review")],
});

const decided = conflict("It was decided already, its time is over, or its run has ended.");

export const approveReview = defineOperation({
  id: "approveReview",
  method: "post",
  path: "/reviews/{reviewId}/approve",
  tag: TAG,
  summary: "Let the run go on, with the records as they are or as you change them",
  description:
    "Where the Blueprint may write after it, with a second factor given within the last thirty minutes; `review_step_up` of the account says otherwise.",
  permission: "review.decide",
  bodyBytesMax: limits.reviewEditsBytesMax,
  body: closed({
    edits: Type.Optional(
      Type.Array(
        closed({ ordinal: Type.Integer({ minimum: 0 }), data: Type.Unsafe<object>({ type: "object" }) }),
        {
          description: "New data of records, by their places.",
        },
      ),
    ),
    exclude: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), { description: "Places of records to leave out." }),
    ),
    reason: Type.Optional(Type.String({ maxLength: limits.reviewReasonCharactersMax, description: "Why." })),
  }),
  status: 200,
  answer: review,
  failures: [missing("review"), decided],
});

export const rejectReview = defineOperation({
  id: "rejectReview",
  method: "post",
  path: "/reviews/{reviewId}/reject",
  tag: TAG,
  summary: "End the run",
  description: "With a second factor where letting it go on wants one.",
  permission: "review.decide",
  body: closed({
    reason: Type.String({ minLength: 1, maxLength: limits.reviewReasonCharactersMax, description: "Why." }),
  }),
  status: 200,
  answer: review,
  failures: [missing("review"), decided],
});
