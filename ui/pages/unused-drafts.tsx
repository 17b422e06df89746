import { Button } from "@mantine/core";
import type { Review } from "../parts/answers.ts";
import { Note } from "../parts/note.tsx";
import { ReviewChanges } from "./review-changes.tsx";
import type { ReviewDrafts } from "./review-drafts.ts";

/** Somebody else decided first: this operator's prepared changes are shown instead of being discarded silently. */
export function UnusedDrafts({ review, drafts }: { readonly review: Review; readonly drafts: ReviewDrafts }) {
  const { editedCount, excludedCount } = drafts;
  if (editedCount + excludedCount === 0) return null;
  return (
    <Note tone="waiting" title={`Your ${describeChanges(drafts)} not used`} isAlert>
      The review ended before you approved it
      {review.decided_by === null ? "." : `: decided by ${review.decided_by}.`}
      <ReviewChanges drafts={drafts} />
      <Button variant="default" size="xs" mt="xs" display="block" onClick={() => drafts.forget()}>
        Discard
      </Button>
    </Note>
  );
}

function describeChanges({ editedCount: edited, excludedCount: excluded }: ReviewDrafts): string {
  const parts = [
    ...(edited > 0 ? [`${edited} ${edited === 1 ? "edit" : "edits"}`] : []),
    ...(excluded > 0 ? [`${excluded} ${excluded === 1 ? "exclusion" : "exclusions"}`] : []),
  ];
  return `${parts.join(" and ")} ${edited + excluded === 1 ? "was" : "were"}`;
}
