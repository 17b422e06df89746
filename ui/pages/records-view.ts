import type { ReviewDrafts } from "./review-drafts.ts";
import type { Selection } from "./review-selection.ts";

/** The records of a review that a table or a list of cards shows. */
export interface RecordsView {
  readonly reviewId: string;
  readonly onlyInvalid: boolean;
  /** One place per record. */
  readonly total: number;
  readonly drafts: ReviewDrafts;
  readonly mayEdit: boolean;
  readonly mayExclude: boolean;
  readonly selection: Selection;
  /** The place that is to be scrolled to and focused; another object each time. */
  readonly goTo: { readonly index: number } | null;
}
