import { listReviewsOver } from "#db/runs/reviews.ts";
import { timeOutReview } from "./decide-review.ts";

const BATCH = 100;

/** Part of the worker's upkeep: lets a run continue, or fail, soon after its review has timed out. */
export async function timeOutReviews(services: Parameters<typeof timeOutReview>[0]): Promise<void> {
  for (const id of await listReviewsOver(services.db, BATCH)) await timeOutReview(services, id);
}
