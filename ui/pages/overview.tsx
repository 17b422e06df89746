import { Anchor, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { Link } from "wouter";
import { failureLine, failureName, WAIT_NAMES } from "#domain/labels/states.ts";
import { listFailures, listReviews, listRuns, readOverview } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { formatDuration, Time } from "../parts/time.tsx";
import { AttentionList, useAttention } from "./attention-list.tsx";
import { runsOfGroup } from "./failure-link.ts";
import { ReviewList } from "./review-list.tsx";
import { RunChart } from "./run-chart.tsx";
import { RunTable } from "./run-table.tsx";

const SHOWN = 5;
/** Reasons of failures. */
const REASONS = 8;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockOf = (at: string): string => clock.format(Date.parse(at));

export function OverviewPage() {
  const overview = useRead(readOverview, {}, { live: true });
  return (
    <>
      <PageHead title="Overview" about="Runs that need attention, and the last 24 hours." />
      <Stack gap="xl">
        <NeedsPeopleSection overview={overview.data} />
        <Reading of={overview}>{(data) => <LastHours overview={data} />}</Reading>
        <LatestRuns />
      </Stack>
    </>
  );
}

function NeedsPeopleSection({ overview }: { readonly overview: Overview | undefined }) {
  const reviews = useRead(listReviews, {}, { live: true });
  const others = useAttention(overview);
  return (
    <Section title="Needs attention" isBare>
      <Reading of={reviews}>
        {({ items }) => (
          <Stack gap="sm">
            {items.length === 0 && others.length === 0 && (
              <EmptyState title="Nothing needs attention">
                Reviews, failed runs, locked credentials and disabled endpoints are listed here.
              </EmptyState>
            )}
            <AttentionList items={others} />
            <AllFailed overview={overview} />
            <ReviewList reviews={items.slice(0, SHOWN)} />
            {items.length > SHOWN && (
              <Anchor component={Link} href="/reviews" size="sm">
                All {items.length} reviews
              </Anchor>
            )}
          </Stack>
        )}
      </Reading>
    </Section>
  );
}

/** The list above has the newest: this has how many there are. */
function AllFailed({ overview }: { readonly overview: Overview | undefined }) {
  const failed = overview?.hours.reduce((sum, hour) => sum + hour.failed, 0) ?? 0;
  if (failed === 0) return null;
  return (
    <Anchor component={Link} href="/runs?status=failed&last=24h" size="sm">
      {failed === 1 ? "The failed run" : `All ${failed} failed runs`} of the last 24 hours
    </Anchor>
  );
}

function LastHours({ overview }: { readonly overview: Overview }) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
        <Section title="Runs by hour">
          <RunChart bars={overview.hours} unit="Hour" nameOf={clockOf} isTall />
        </Section>
        <Stack gap="xl">
          <Section title="Run duration">
            <Durations durations={overview.durations} />
          </Section>
          <Section title="Open runs">
            <Waiting waiting={overview.waiting} />
          </Section>
        </Stack>
      </SimpleGrid>
      <Section
        title="Failures in the last 24 hours"
        actions={
          <Anchor component={Link} href="/runs?by=error&last=24h" size="sm">
            View by error
          </Anchor>
        }
      >
        <Failures overview={overview} />
      </Section>
    </>
  );
}

function Durations({ durations }: { readonly durations: Overview["durations"] }) {
  const { p50_ms: half, p90_ms: nine, p99_ms: most } = durations;
  if (half === null || nine === null || most === null)
    return <None>No runs completed in the last 24 hours.</None>;
  return (
    <Facts
      of={[
        ["Median", formatDuration(half)],
        ["90th percentile", formatDuration(nine)],
        ["99th percentile", formatDuration(most)],
        ["Completed runs", durations.runs],
      ]}
    />
  );
}

function Waiting({ waiting }: { readonly waiting: Overview["waiting"] }) {
  if (waiting.length === 0) return <None>There are no open runs.</None>;
  return (
    <Table verticalSpacing="xs">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Waiting for</Table.Th>
          <Table.Th>Runs</Table.Th>
          <Table.Th>Oldest</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {waiting.map(({ waits_for: reason, runs, oldest_at: at }) => (
          <Table.Tr key={reason}>
            <Table.Td>{WAIT_NAMES[reason]}</Table.Td>
            <Table.Td>{runs}</Table.Td>
            <Table.Td>
              <Time at={at} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** Why runs failed, the most frequent reason first. */
function Failures({ overview }: { readonly overview: Overview }) {
  const since = overview.hours[0]?.at;
  const { data } = useRead(listFailures, { query: { since } }, { live: true });
  const failures = data?.items ?? [];
  if (failures.length === 0) return <None>Nothing has failed.</None>;
  return (
    <Table verticalSpacing="xs">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Reason</Table.Th>
          <Table.Th>Blueprint</Table.Th>
          <Table.Th className="wide">Customers</Table.Th>
          <Table.Th className="figure">Runs</Table.Th>
          <Table.Th>Last</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {failures.slice(0, REASONS).map((group) => (
          <Table.Tr key={`${group.account} ${group.blueprint} ${group.failure} ${group.error}`}>
            <Table.Td className="any-break">
              <Anchor component={Link} href={runsOfGroup(group, "24h")} fw={600} size="sm">
                {failureName(group.failure)}
              </Anchor>{" "}
              {group.last_detail !== null && failureLine(group.last_detail)}
            </Table.Td>
            <Table.Td className="no-wrap">{group.blueprint ?? "Test login"}</Table.Td>
            <Table.Td className="wide">{group.customers.join(", ") || "–"}</Table.Td>
            <Table.Td className="figure">{group.runs}</Table.Td>
            <Table.Td className="no-wrap">
              <Anchor component={Link} href={`/runs/${group.last_run_id}`} size="sm">
                <Time at={group.last_at} isShort />
              </Anchor>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const None = ({ children }: { readonly children: string }) => (
  <Text size="sm" c="dimmed">
    {children}
  </Text>
);

function LatestRuns() {
  const runs = useRead(listRuns, { query: { limit: SHOWN } }, { live: true });
  return (
    <Section
      title="Latest runs"
      isBare
      actions={
        <Anchor component={Link} href="/runs" size="sm">
          View all runs
        </Anchor>
      }
    >
      <Reading of={runs}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No runs yet">
              A run starts when an account's backend triggers a Blueprint.
            </EmptyState>
          ) : (
            <RunTable runs={items} />
          )
        }
      </Reading>
    </Section>
  );
}
