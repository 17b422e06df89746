import type { Needs } from "#actions/services.ts";
import { announcePresence, endPresence } from "#db/runs/review-presence.ts";
import { findReview } from "#db/runs/reviews.ts";
import { sendRunChanges } from "#db/runs/run-notifier.ts";
import { isId } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { notFound } from "#domain/problem.ts";
import { describeError } from "#lib/log.ts";
import type { OperatorCaller } from "./operator-caller.ts";

export type PresenceState = "viewing" | "editing" | "left";

/**
 * Says that the caller has a review in view, for a while, and lists the other operators who have. Those are notified when somebody
 * comes, leaves, or begins or ends to edit. Changes nothing else, so it is not audited. Throws Problem 404.
 */
export async function noteAtReview(
  services: Needs<"db" | "log">,
  { operatorId }: OperatorCaller,
  id: string,
  state: PresenceState,
) {
  const { db } = services;
  const review = isId("review", id) ? await findReview(db, id) : undefined;
  if (!review) throw notFound("Review");
  const who = { reviewId: id, operatorId };
  const { isNews, others } =
    state === "left"
      ? { isNews: await endPresence(db, who), others: [] }
      : await announcePresence(db, {
          ...who,
          isEditing: state === "editing",
          liveMs: limits.reviewPresenceMs,
        });
  // Pages that are not notified find it by their next message.
  if (isNews)
    await sendRunChanges(db, "presence", { changed: [review.runId] }).catch((error: unknown) => {
      services.log.debug(describeError(error), "notifying of an operator at a review failed");
    });
  return {
    others: others.map(({ operator, isEditing, since }) => ({
      operator,
      is_editing: isEditing,
      since: since.toISOString(),
    })),
  };
}
