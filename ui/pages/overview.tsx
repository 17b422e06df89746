import { Anchor, Stack, Title } from "@mantine/core";
import { Link } from "wouter";
import { listReviews, listRuns } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { ReviewCards } from "./review-list.tsx";
import { RunTable } from "./run-list.tsx";

const SHOWN = 8;

export function OverviewPage() {
  const reviews = useRead(listReviews, {}, { live: true });
  const runs = useRead(listRuns, { query: { limit: SHOWN } }, { live: true });
  return (
    <>
      <PageHead title="Overview" />
      <Stack gap="xl">
        <section aria-labelledby="needs-you">
          <Title order={2} id="needs-you" mb="sm">
            Needs a person
          </Title>
          <Reading of={reviews}>
            {({ items }) =>
              items.length === 0 ? (
                <EmptyState title="Nothing waits for you">
                  Runs that stop for a review are listed here.
                </EmptyState>
              ) : (
                <ReviewCards reviews={items.slice(0, SHOWN)} />
              )
            }
          </Reading>
        </section>
        <section aria-labelledby="latest">
          <Title order={2} id="latest" mb="sm">
            Latest runs
          </Title>
          <Reading of={runs}>{({ items }) => <RunTable runs={items} />}</Reading>
          <Anchor component={Link} href="/runs" mt="sm" display="inline-block">
            All runs
          </Anchor>
        </section>
      </Stack>
    </>
  );
}
