import { Anchor, Stack, Text } from "@mantine/core";
import { Link, useParams } from "wouter";
import { onTimeoutName, REVIEW_STATE_NAMES as names } from "#domain/labels/states.ts";
import { readReview } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Review } from "../parts/answers.ts";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";
import { ReviewDesk } from "./review-desk.tsx";

export function ReviewPage() {
  const { reviewId = "" } = useParams();
  const review = useRead(readReview, { params: { reviewId } }, { live: true });
  return (
    <>
      {review.data === undefined && <PageHead title="Review" />}
      <Reading of={review}>{(data) => <ReviewDetail review={data} />}</Reading>
    </>
  );
}

const STATES: Readonly<Record<Review["status"], readonly [tone: string, text: string]>> = {
  open: ["waiting", names.open],
  approved: ["good", names.approved],
  rejected: ["bad", names.rejected],
  timed_out: ["bad", names.timed_out],
  closed: ["quiet", names.closed],
};

function ReviewDetail({ review }: { readonly review: Review }) {
  const { may } = useSignedIn();
  const [tone, text] = STATES[review.status];
  return (
    <>
      <PageHead title={review.title} about={<Mark tone={tone}>{text}</Mark>} />
      <Stack gap="lg">
        {review.instructions !== null && (
          <Text size="sm" className="any-break keep-lines">
            {review.instructions}
          </Text>
        )}
        <Facts
          of={[
            [
              "Run",
              <Anchor key="run" component={Link} href={`/runs/${review.run_id}`} size="sm">
                {review.run_name ?? review.run_id}
              </Anchor>,
            ],
            ...Object.entries(review.metadata),
            ["Blueprint", review.blueprint],
            ["Account", review.account],
            ["Waiting since", <Time key="since" at={review.created_at} isExact />],
            [
              "Records",
              `${review.records_total}, ${review.records_total - review.records_valid} with errors`,
            ],
            [
              onTimeoutName(review.on_timeout),
              review.status === "open" && review.expires_at !== null ? (
                <Time key="end" at={review.expires_at} />
              ) : null,
            ],
          ]}
        />
        {review.status !== "open" && <Decision review={review} />}
        {may("review.records") ? (
          <ReviewDesk key={review.status} review={review} />
        ) : (
          <Text size="sm" c="dimmed">
            Your role can see this review but not its records.
          </Text>
        )}
      </Stack>
    </>
  );
}

function Decision({ review }: { readonly review: Review }) {
  return (
    <Note tone="quiet" title="Decision">
      <Facts
        of={[
          ["Decided by", review.decided_by ?? "nobody"],
          ["When", review.decided_at === null ? null : <Time key="at" at={review.decided_at} isExact />],
          ["Records edited", review.edited],
          ["Records excluded", review.excluded],
          ["Reason", review.reason],
        ]}
      />
    </Note>
  );
}
