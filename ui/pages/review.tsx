import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { Link, useParams } from "wouter";
import { REVIEW_STATE_NAMES as names } from "#domain/labels/states.ts";
import { listReviews, readReview } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Review } from "../parts/answers.ts";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { MetadataChips } from "../parts/metadata-chips.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { ReviewDeadline } from "./review-list.tsx";
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
  const { place, next } = useOpenReviews(review);
  return (
    <>
      <PageHead
        title={review.run_name ?? Object.values(review.metadata)[0] ?? review.title}
        about={
          <Group gap="xs">
            {/* Announced when it changes. */}
            <output>
              <Mark tone={tone}>{text}</Mark>
            </output>
            <Anchor component={Link} href={`/runs/${review.run_id}`} fw={600} size="sm">
              Open the run
            </Anchor>
            <MetadataChips of={review.metadata} />
          </Group>
        }
      >
        {place !== null && (
          <Text size="sm" c="dimmed">
            {place}
          </Text>
        )}
        {next && (
          <Button variant="default" component={Link} href={`/reviews/${next.id}`}>
            Next review
          </Button>
        )}
      </PageHead>
      <Stack gap="lg">
        <div>
          <Text fw={600} className="any-break">
            {review.title}
          </Text>
          {review.instructions !== null && (
            <Text size="sm" className="any-break keep-lines">
              {review.instructions}
            </Text>
          )}
          {review.status === "open" && (
            <Text size="sm" c="dimmed">
              <ReviewDeadline of={review} />
            </Text>
          )}
        </div>
        <ReviewFacts review={review} />
        {review.status !== "open" && <Decision review={review} />}
        {may("review.records") ? (
          <ReviewDesk key={review.status} review={review} next={next} />
        ) : (
          <Text size="sm" c="dimmed">
            Your role can see this review but not its records.
          </Text>
        )}
      </Stack>
    </>
  );
}

function ReviewFacts({ review }: { readonly review: Review }) {
  const { may } = useSignedIn();
  return (
    <Facts
      isInline
      of={[
        ["Waiting since", <Time key="since" at={review.created_at} isExact />],
        [
          "Run ID",
          <Copyable key="run" text={review.run_id} shown={shortId(review.run_id)} name="the run ID" />,
        ],
        [
          "Blueprint",
          <LinkIf
            key="of"
            to={
              may("config.read") &&
              `/blueprints/${review.account}/${review.blueprint}?tab=document&node=${review.node}`
            }
          >
            {`${review.blueprint}, node ${review.node}`}
          </LinkIf>,
        ],
        [
          "Account",
          <LinkIf key="account" to={may("config.read") && `/accounts/${review.account}`}>
            {review.account}
          </LinkIf>,
        ],
      ]}
    />
  );
}

/** Where the review is among the open ones, and which comes after it: the next oldest, and after the newest the oldest. */
function useOpenReviews(review: Review): { readonly place: string | null; readonly next: Review | null } {
  const { data } = useRead(listReviews, {}, { live: true });
  const open = data?.items ?? [];
  const at = open.findIndex(({ id }) => id === review.id);
  const others = open.filter(({ id }) => id !== review.id);
  const after = others.find(({ created_at: since }) => since > review.created_at);
  return {
    place: at === -1 || open.length === 1 ? null : `${at + 1} of ${open.length} open`,
    next: open[at + 1] ?? after ?? others[0] ?? null,
  };
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
