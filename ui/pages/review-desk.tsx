import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useState } from "react";
import { useSignedIn } from "../api/queries.ts";
import type { Review } from "../parts/answers.ts";
import { ReviewCards } from "./review-cards.tsx";
import { ReviewDecision } from "./review-decision.tsx";
import { useReviewDrafts } from "./review-drafts.ts";
import { ReviewTable } from "./review-table.tsx";
import { UnusedDrafts } from "./unused-drafts.tsx";

const PHONE = "(max-width: 48em)";

/** The records with their edits, and the decision. */
export function ReviewDesk({ review }: { readonly review: Review }) {
  const { may } = useSignedIn();
  const drafts = useReviewDrafts(review);
  const [shown, setShown] = useState("all");
  const isPhone = useMediaQuery(PHONE, window.matchMedia(PHONE).matches);
  const mayDecide = review.status === "open" && may("review.decide");
  const invalid = review.records_total - review.records_valid;
  const view = {
    reviewId: review.id,
    onlyInvalid: shown === "invalid",
    total: shown === "invalid" ? invalid : review.records_total,
    drafts,
    mayEdit: mayDecide && review.editable,
    mayExclude: mayDecide,
  };
  const Records = isPhone ? ReviewCards : ReviewTable;
  return (
    <Stack gap="md">
      {review.status !== "open" && <UnusedDrafts review={review} drafts={drafts} />}
      <Group justify="space-between">
        <SegmentedControl
          aria-label="Records to show"
          value={shown}
          onChange={setShown}
          data={[
            { value: "all", label: `All ${review.records_total}` },
            { value: "invalid", label: `With errors ${invalid}` },
          ]}
        />
        {mayDecide && !review.editable && (
          <Text size="sm" c="dimmed">
            These records can be excluded but not edited.
          </Text>
        )}
      </Group>
      {view.total === 0 ? (
        <Text size="sm" c="dimmed">
          {review.records_total === 0 ? "There are no records." : "No record has errors."}
        </Text>
      ) : (
        <Records key={shown} {...view} />
      )}
      {mayDecide && <ReviewDecision review={review} drafts={drafts} />}
    </Stack>
  );
}
