import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import {
  closed,
  conflict,
  count,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  record,
  text,
  time,
  whole,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Reviews");

const STATUSES = ["open", "approved", "rejected", "timed_out", "closed"] as const;

const review = closed(
  {
    id: text("The review's id (`rev_...`)."),
    account: text("The account's name."),
    run_id: text("The run that waits."),
    run_name: orNull(text("Its name; `null`: it has none, or its data was purged.")),
    metadata: Type.Record(Type.String(), Type.String(), { description: "The run's metadata." }),
    blueprint: text("The Blueprint's key."),
    node: text("The node that requested it."),
    title: text("The question."),
    instructions: orNull(text("How to decide.")),
    editable: Type.Boolean({ description: "Whether records may be edited." }),
    records_total: count("All records."),
    records_valid: count("Records without errors."),
    created_at: time("When it was requested."),
    expires_at: orNull(time("When it times out.")),
    on_timeout: orNull(text("The outcome of a timeout: fail or approve.")),
    status: oneOf(STATUSES, "Its status."),
    decided_by: orNull(text("The reviewer: an operator's email, `cli`, or `timeout`.")),
    decided_at: orNull(time("When it was decided.")),
    reason: orNull(text("The reviewer's reason.")),
    edited: count("Records that were edited."),
    excluded: count("Records that were excluded."),
  },
  { title: "Review" },
);

export const listReviews = defineOperation({
  id: "listReviews",
  method: "get",
  path: "/reviews",
  summary: "List open reviews, oldest first",
  description: "At most 1,000.",
  permission: "review.read",
  accounts: "own",
  query: closed({ account: ofAccount }),
  answer: whole("Reviews", review),
});

export const readReview = defineOperation({
  id: "readReview",
  method: "get",
  path: "/reviews/{reviewId}",
  summary: "Read a review",
  permission: "review.read",
  answer: review,
  failures: [missing("review")],
});

export const listReviewRecords = defineOperation({
  id: "listReviewRecords",
  method: "get",
  path: "/reviews/{reviewId}/records",
  summary: "List a review's records, before any edits",
  permission: "review.records",
  query: closed({
    ...paging,
    valid: Type.Optional(
      Type.Boolean({ description: "Only records without errors, or only records with errors." }),
    ),
    from: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: "Skip this many records of the list. It can't be used together with `cursor`.",
      }),
    ),
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: "Only records with a higher ordinal. It can't be used together with `cursor`.",
      }),
    ),
  }),
  answer: page("ReviewRecords", record("ReviewRecord")),
  failures: [missing("review")],
});

const decided = conflict("It is already decided, has timed out, or its run has ended.");

export const approveReview = defineOperation({
  id: "approveReview",
  method: "post",
  path: "/reviews/{reviewId}/approve",
  summary: "Approve a review, with or without changes to its records",
  description:
    "If the Blueprint may write after the review, this needs a second factor given within the last thirty minutes, unless the account's `review_step_up` says otherwise.",
  permission: "review.decide",
  bodyBytesMax: limits.reviewEditsBytesMax,
  body: closed({
    edits: Type.Optional(
      Type.Array(
        closed({ ordinal: Type.Integer({ minimum: 0 }), data: Type.Unsafe<object>({ type: "object" }) }),
        {
          description: "New data for records, by ordinal.",
        },
      ),
    ),
    exclude: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), { description: "Ordinals of records to exclude." }),
    ),
    exclude_invalid: Type.Optional(
      Type.Boolean({ description: "Also exclude all records with errors that `edits` does not change." }),
    ),
    reason: Type.Optional(Type.String({ maxLength: limits.reviewReasonCharactersMax, description: "Why." })),
  }),
  answer: review,
  failures: [missing("review"), decided],
});

export const rejectReview = defineOperation({
  id: "rejectReview",
  method: "post",
  path: "/reviews/{reviewId}/reject",
  summary: "Reject a review and cancel its run",
  description: "Needs a second factor if approving does.",
  permission: "review.decide",
  body: closed({
    reason: Type.String({ minLength: 1, maxLength: limits.reviewReasonCharactersMax, description: "Why." }),
  }),
  answer: review,
  failures: [missing("review"), decided],
});

export const noteAtReview = defineOperation({
  id: "noteAtReview",
  method: "post",
  path: "/reviews/{reviewId}/presence",
  summary: "Say that you are at a review, and list the other operators who are",
  description: `Counts for ${limits.reviewPresenceMs / 1_000} s; repeat it every 20 s. When somebody comes, leaves, or begins or ends to edit, \`GET /events\` reports a change of the review.`,
  permission: "review.attend",
  body: closed({
    state: oneOf(["viewing", "editing", "left"] as const, "`editing`: with changes that are not sent."),
  }),
  answer: closed(
    {
      others: Type.Array(
        closed({
          operator: text("Their email."),
          is_editing: Type.Boolean({ description: "Whether they have changes that are not sent." }),
          since: time("When they came."),
        }),
        { description: "The earliest first." },
      ),
    },
    { title: "ReviewPresence" },
  ),
  failures: [missing("review")],
});
