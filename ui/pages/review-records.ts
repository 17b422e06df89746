import { listReviewRecords } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { fieldsOf, type ReviewRecord } from "../parts/answers.ts";
import { useColumns, usePagedRecords } from "../parts/paged-records.ts";
import type { ReviewDrafts } from "./review-drafts.ts";

/** The records of a review that a table or a list of cards shows. */
export interface RecordsView {
  readonly reviewId: string;
  readonly onlyInvalid: boolean;
  /** One place per record. */
  readonly total: number;
  readonly drafts: ReviewDrafts;
  readonly mayEdit: boolean;
  readonly mayExclude: boolean;
}

/** The records around the visible places, and their fields. */
export function useReviewRecords(
  { reviewId, onlyInvalid }: Pick<RecordsView, "reviewId" | "onlyInvalid">,
  first: number,
  last: number,
) {
  const { loaded, ...pages } = usePagedRecords<ReviewRecord>(
    (range) => {
      const input = { params: { reviewId }, query: { ...range, ...(onlyInvalid ? { valid: false } : {}) } };
      return {
        queryKey: keyOf(listReviewRecords, input),
        queryFn: async ({ signal }) => await call(listReviewRecords, input, signal),
      };
    },
    first,
    last,
  );
  return { ...pages, fields: useColumns(loaded.flatMap(({ data }) => Object.keys(fieldsOf(data)))) };
}
