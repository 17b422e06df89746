import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useState } from "react";
import { useSignedIn } from "../api/queries.ts";
import type { Review } from "../parts/answers.ts";
import { NextError } from "./next-error.tsx";
import { ReviewBulk } from "./review-bulk.tsx";
import { ReviewCards } from "./review-cards.tsx";
import { ReviewDecision } from "./review-decision.tsx";
import { useReviewDrafts } from "./review-drafts.ts";
import type { RecordsView } from "./records-view.ts";
import { useSelection } from "./review-selection.ts";
import { ReviewPresence } from "./review-presence.tsx";
import { ReviewTable } from "./review-table.tsx";
import { UnusedDrafts } from "./unused-drafts.tsx";

const PHONE = "(max-width: 48em)";

/** The records with their edits, and the decision. `next`: the review that follows the decision. */
export function ReviewDesk({ review, next }: { readonly review: Review; readonly next: Review | null }) {
  const { may } = useSignedIn();
  const drafts = useReviewDrafts(review);
  const [goTo, setGoTo] = useState<RecordsView["goTo"]>(null);
  const isPhone = useMediaQuery(PHONE, window.matchMedia(PHONE).matches);
  const mayDecide = review.status === "open" && may("review.decide");
  const invalid = review.records_total - review.records_valid;
  // What there is to do comes first.
  const [shown, setShown] = useState(mayDecide && invalid > 0 ? "invalid" : "all");
  const onlyInvalid = shown === "invalid";
  const total = onlyInvalid ? invalid : review.records_total;
  const selection = useSelection({ reviewId: review.id, onlyInvalid, total });
  const view: RecordsView = {
    reviewId: review.id,
    onlyInvalid,
    total,
    drafts,
    mayEdit: mayDecide && review.editable,
    mayExclude: mayDecide,
    selection,
    goTo,
  };
  const show = (which: string): void => {
    // Places are those of the other list.
    setGoTo(null);
    selection.clear();
    setShown(which);
  };
  const Records = isPhone ? ReviewCards : ReviewTable;
  return (
    <Stack gap="md">
      {review.status !== "open" && <UnusedDrafts review={review} drafts={drafts} />}
      {mayDecide && (
        <ReviewPresence reviewId={review.id} isEditing={drafts.editedCount + drafts.excludedCount > 0} />
      )}
      <Group gap="sm">
        <SegmentedControl
          aria-label="Records to show"
          mr="auto"
          value={shown}
          onChange={show}
          data={[
            { value: "all", label: `All ${review.records_total}` },
            { value: "invalid", label: `With errors ${invalid}` },
          ]}
        />
        {mayDecide && invalid > 0 && <NextError view={view} isPhone={isPhone === true} onFound={setGoTo} />}
        {mayDecide && view.total > 1 && <ReviewBulk view={view} />}
      </Group>
      {mayDecide && !review.editable && (
        <Text size="sm" c="dimmed">
          These records can be excluded but not edited.
        </Text>
      )}
      {view.total === 0 ? (
        <Text size="sm" c="dimmed">
          {review.records_total === 0 ? "There are no records." : "No record has errors."}
        </Text>
      ) : (
        <Records key={shown} {...view} />
      )}
      {mayDecide && <ReviewDecision review={review} drafts={drafts} next={next} />}
    </Stack>
  );
}
