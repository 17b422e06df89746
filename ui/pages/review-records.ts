import { listReviewRecords } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { fieldsOf, type ReviewRecord } from "../parts/answers.ts";
import { PAGE_RECORDS, useColumns, usePagedRecords } from "../parts/paged-records.ts";

/** A list of records: all of a review, or those with errors. */
interface Shown {
  readonly reviewId: string;
  readonly onlyInvalid: boolean;
}

const inputOf = ({ reviewId, onlyInvalid }: Shown) => ({
  params: { reviewId },
  query: onlyInvalid ? { valid: false } : {},
});

/** The records around the visible places, and their fields. */
export function useReviewRecords(view: Shown, first: number, last: number) {
  const { params, query } = inputOf(view);
  const { loaded, ...pages } = usePagedRecords<ReviewRecord>(
    (range) => {
      const input = { params, query: { ...range, ...query } };
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

/** The records at the places from `first` on, at most `count`. Throws ApiFailure. */
export async function loadRecords(
  view: Shown,
  first: number,
  count: number,
): Promise<readonly ReviewRecord[]> {
  const { params, query } = inputOf(view);
  const records: ReviewRecord[] = [];
  while (records.length < count) {
    const limit = Math.min(PAGE_RECORDS, count - records.length);
    const { items } = await call(listReviewRecords, {
      params,
      query: { ...query, from: first + records.length, limit },
    });
    records.push(...items);
    if (items.length < limit) break;
  }
  return records;
}
