import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { failureLine, failureName } from "#domain/labels/states.ts";
import { listFailures, readBlueprintHealth } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { useNow } from "../parts/now.ts";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { rateOf } from "../parts/success-rate.ts";
import { formatDuration, Time } from "../parts/time.tsx";
import { runsOfGroup } from "./failure-link.ts";
import { dayOf, HealthCharts } from "./health-charts.tsx";

type Health = AnswerOf<typeof readBlueprintHealth>;

const whole = new Intl.NumberFormat("en");

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Named {
  readonly account: string;
  readonly blueprintKey: string;
}

/** How the Blueprint's runs of the last 30 days went. */
export function BlueprintHealth({ params }: { readonly params: Named }) {
  const health = useRead(readBlueprintHealth, { params, query: {} }, { live: true });
  return (
    <Reading of={health}>
      {(read) =>
        read.runs === 0 ? (
          <EmptyState title="No runs in the last 30 days">
            Its success rate and durations appear here after its first run.
          </EmptyState>
        ) : (
          <Stack gap="xl">
            <Section title="Last 30 days" actions={<FailedRuns params={params} />}>
              <Total of={read} />
            </Section>
            <Reasons params={params} />
            <HealthCharts of={read.by_day} />
            <details>
              <summary>Show the days as a table</summary>
              <Days of={read.by_day} params={params} />
            </details>
          </Stack>
        )
      }
    </Reading>
  );
}

const DAYS_MS = 30 * DAY_MS;

/** Why runs failed, the most frequent reason first. */
function Reasons({ params: { account, blueprintKey: blueprint } }: { readonly params: Named }) {
  // By the hour: a query has a key, and is not another one at each moment.
  const since = new Date(Math.floor((useNow() - DAYS_MS) / HOUR_MS) * HOUR_MS).toISOString();
  const { data } = useRead(listFailures, { query: { account, blueprint, since } }, { live: true });
  if (data === undefined || data.items.length === 0) return null;
  return (
    <Section title="Why runs failed" isBare>
      <DataTable
        name="Why runs failed"
        rows={data.items}
        keyOf={({ failure, error }) => `${failure} ${error}`}
        columns={[
          {
            title: "Reason",
            cell: (group) => (
              <>
                <Anchor component={Link} href={runsOfGroup(group, null)} fw={600} size="sm">
                  {failureName(group.failure)}
                </Anchor>{" "}
                {group.last_detail !== null && failureLine(group.last_detail)}
              </>
            ),
          },
          { title: "Customers", from: "sm", cell: ({ customers }) => customers.join(", ") || "–" },
          { title: "Runs", isFigure: true, cell: ({ runs }) => whole.format(runs) },
          {
            title: "Last",
            cell: ({ last_run_id: id, last_at: at }) => (
              <Anchor component={Link} href={`/runs/${id}`} size="sm">
                <Time at={at} />
              </Anchor>
            ),
          },
        ]}
      />
    </Section>
  );
}

const FailedRuns = ({ params: { account, blueprintKey: blueprint } }: { readonly params: Named }) => (
  <Anchor
    component={Link}
    href={`/runs?${new URLSearchParams({ account, blueprint, status: "failed" })}`}
    size="sm"
  >
    View failed runs
  </Anchor>
);

const timeOf = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

/** A rate, and of how many: one of few says little. */
const Share = ({ of }: { readonly of: { readonly completed: number; readonly failed: number } }) => (
  <>
    {rateOf(of)}{" "}
    <Text span size="xs" c="dimmed">
      {whole.format(of.completed)} of {whole.format(of.completed + of.failed)}
    </Text>
  </>
);

const Total = ({ of }: { readonly of: Health }) => (
  <Facts
    of={[
      ["Success rate", <Share key="share" of={of} />],
      ["Runs", whole.format(of.runs)],
      ["Failed", whole.format(of.failed)],
      ["Cancelled", whole.format(of.cancelled)],
      ["Median", timeOf(of.p50_ms)],
      ["95th percentile", timeOf(of.p95_ms)],
      ["Records", whole.format(of.records)],
      ["Counted since", of.since === null ? null : <Time key="since" at={of.since} />],
    ]}
  />
);

/** The runs that were triggered on a day of UTC. */
const runsOf = (
  { account, blueprintKey: blueprint }: Named,
  at: string,
  more: Readonly<Record<string, string>> = {},
): string => {
  const since = Date.parse(at.slice(0, 10));
  return `/runs?${new URLSearchParams({
    account,
    blueprint,
    since: new Date(since).toISOString(),
    until: new Date(since + DAY_MS).toISOString(),
    ...more,
  })}`;
};

const Days = ({ of, params }: { readonly of: Health["by_day"]; readonly params: Named }) => (
  <DataTable
    name="By day"
    isNumeric
    rows={of.toReversed()}
    keyOf={({ at }) => at}
    columns={[
      {
        title: "Day (UTC)",
        cell: ({ at }) => (
          <Anchor component={Link} href={runsOf(params, at)} size="sm" className="no-wrap">
            <time dateTime={at.slice(0, 10)}>{dayOf(at)}</time>
          </Anchor>
        ),
      },
      { title: "Completed", cell: (each) => <Share of={each} /> },
      { title: "Runs", cell: ({ runs }) => whole.format(runs) },
      {
        title: "Failed",
        cell: ({ at, failed }) =>
          failed === 0 ? (
            "0"
          ) : (
            <Anchor component={Link} href={runsOf(params, at, { status: "failed" })} size="sm">
              {whole.format(failed)}
            </Anchor>
          ),
      },
      { title: "Median", from: "sm", cell: ({ p50_ms: ms }) => timeOf(ms) },
      { title: "95th percentile", from: "sm", cell: ({ p95_ms: ms }) => timeOf(ms) },
      { title: "Records", from: "md", cell: ({ records }) => whole.format(records) },
    ]}
  />
);
