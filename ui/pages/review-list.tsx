import { Anchor, Group, Paper, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { onTimeoutName } from "#domain/labels/states.ts";

import type { Review } from "../parts/answers.ts";
import { listReviews } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

export function ReviewListPage() {
  const reviews = useRead(listReviews, {}, { live: true });
  return (
    <>
      <PageHead title="Reviews" about="Runs that await a decision, longest wait first." />
      <Reading of={reviews}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No open reviews">
              A Blueprint's node of the type <code>review</code> stops a run until somebody has looked at its
              records. When one does, it is here.
            </EmptyState>
          ) : (
            <ReviewList reviews={items} />
          )
        }
      </Reading>
    </>
  );
}

export function ReviewList({ reviews }: { readonly reviews: readonly Review[] }) {
  return (
    <Stack component="ul" gap="sm" className="plain-list">
      {reviews.map((review) => (
        <Paper component="li" key={review.id} withBorder radius="lg" p="md" className="card-link">
          <Group justify="space-between" align="flex-start" gap="sm">
            <div className="grow">
              <Anchor
                component={Link}
                href={`/reviews/${review.id}`}
                fw={600}
                className="stretched any-break"
              >
                {review.title}
              </Anchor>
              <Text size="sm" className="any-break">
                {[
                  review.run_name,
                  ...Object.entries(review.metadata).map(([name, value]) => `${name}: ${value}`),
                ]
                  .filter((text) => text !== null)
                  .join(" · ")}
              </Text>
              <Text size="sm" c="dimmed" className="any-break">
                {review.blueprint} · {review.account}
              </Text>
            </div>
            <div>
              <Text size="sm">{countRecords(review)}</Text>
              <Text size="sm" c="dimmed">
                requested <Time at={review.created_at} />
              </Text>
              {review.expires_at !== null && (
                <Text size="sm" component="div">
                  <Mark tone="waiting">{onTimeoutName(review.on_timeout)}</Mark>{" "}
                  <Time at={review.expires_at} />
                </Text>
              )}
            </div>
          </Group>
        </Paper>
      ))}
    </Stack>
  );
}

function countRecords({ records_total: total, records_valid: valid }: Review): string {
  const records = `${total} ${total === 1 ? "record" : "records"}`;
  return total === valid ? records : `${records}, ${total - valid} with errors`;
}
