import { listReviewsOver } from "#db/runs/reviews.ts";
import { timeOutReview } from "./decide-review.ts";

const BATCH = 100;

/** Part of the worker's upkeep: so that a run goes on, or fails, soon after its review's time is over. */
export async function timeOutReviews(services: Parameters<typeof timeOutReview>[0]): Promise<void> {
  for (const id of await listReviewsOver(services.db, BATCH)) await timeOutReview(services, id);
}
