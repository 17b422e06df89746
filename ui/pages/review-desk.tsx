import { Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { listReviewRecords } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { fieldsOf, type Review, type ReviewRecord } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { ReviewCards } from "./review-cards.tsx";
import { ReviewDecision } from "./review-decision.tsx";
import { useDrafts, useWarnBeforeClosing } from "./review-drafts.ts";
import { ReviewTable } from "./review-table.tsx";

const PAGE = 100;
const PHONE = "(max-width: 48em)";

/** The records, what somebody changes in them, and the decision. */
export function ReviewDesk({ review }: { readonly review: Review }) {
  const { may } = useSignedIn();
  const records = useRecords(review.id);
  const drafts = useDrafts(review);
  const [shown, setShown] = useState("all");
  const isPhone = useMediaQuery(PHONE, window.matchMedia(PHONE).matches);
  const mayDecide = review.status === "open" && may("review.decide");
  useWarnBeforeClosing();
  if (records.failure) return <FailureNote error={records.failure} onRetry={records.retry} />;
  const items = shown === "all" ? records.items : records.items.filter((record) => !record.is_valid);
  const fields = [...new Set(records.items.flatMap(({ data }) => Object.keys(fieldsOf(data))))];
  const view = {
    records: items,
    fields,
    drafts,
    mayEdit: mayDecide && review.editable,
    mayExclude: mayDecide,
  };
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <SegmentedControl
          aria-label="Records to show"
          value={shown}
          onChange={setShown}
          data={[
            { value: "all", label: "All" },
            { value: "invalid", label: "With errors" },
          ]}
        />
        {mayDecide && !review.editable && (
          <Text size="sm" c="dimmed">
            These records can be excluded but not edited.
          </Text>
        )}
      </Group>
      {isPhone ? <ReviewCards {...view} /> : <ReviewTable {...view} />}
      {items.length === 0 && !records.isLoading && (
        <Text size="sm" c="dimmed">
          {review.records_total === 0 ? "There are no records." : "None of the loaded records has errors."}
        </Text>
      )}
      {records.more && (
        <Button variant="default" loading={records.isLoading} onClick={records.more}>
          Load more of {review.records_total}
        </Button>
      )}
      {mayDecide && <ReviewDecision review={review} drafts={drafts} />}
    </Stack>
  );
}

function useRecords(reviewId: string) {
  const input = { params: { reviewId } };
  const pages = useInfiniteQuery({
    queryKey: keyOf(listReviewRecords, input),
    // They stay as they came.
    staleTime: Infinity,
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }) =>
      await call(listReviewRecords, { ...input, query: { limit: PAGE, cursor: pageParam } }, signal),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const items: readonly ReviewRecord[] = pages.data?.pages.flatMap((page) => page.items) ?? [];
  return {
    items,
    isLoading: pages.isFetching,
    failure: pages.error,
    retry: () => void pages.refetch(),
    more: pages.hasNextPage ? () => void pages.fetchNextPage() : null,
  };
}
