import { Anchor, Stack } from "@mantine/core";
import { Link } from "wouter";
import { readBlueprintHealth } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { rateOf } from "../parts/success-rate.ts";
import { formatDuration, Time } from "../parts/time.tsx";
import { dayOf, HealthCharts } from "./health-charts.tsx";

type Health = AnswerOf<typeof readBlueprintHealth>;

const whole = new Intl.NumberFormat("en");

/** How the Blueprint's runs of the last 30 days went. */
export function BlueprintHealth({
  params,
}: {
  readonly params: { readonly account: string; readonly blueprintKey: string };
}) {
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
            <HealthCharts of={read.by_day} />
            <Section title="By day" isBare>
              <Days of={read.by_day} />
            </Section>
          </Stack>
        )
      }
    </Reading>
  );
}

const FailedRuns = ({
  params: { account, blueprintKey: blueprint },
}: {
  readonly params: { readonly account: string; readonly blueprintKey: string };
}) => (
  <Anchor
    component={Link}
    href={`/runs?${new URLSearchParams({ account, blueprint, status: "failed" })}`}
    size="sm"
  >
    View failed runs
  </Anchor>
);

const timeOf = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

const Total = ({ of }: { readonly of: Health }) => (
  <Facts
    of={[
      ["Success rate", rateOf(of)],
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

const Days = ({ of }: { readonly of: Health["by_day"] }) => (
  <DataTable
    name="By day"
    isNumeric
    rows={of}
    keyOf={({ at }) => at}
    columns={[
      {
        title: "Day (UTC)",
        cell: ({ at }) => (
          <time dateTime={at.slice(0, 10)} className="no-wrap">
            {dayOf(at)}
          </time>
        ),
      },
      { title: "Success rate", cell: (each) => rateOf(each) },
      { title: "Runs", cell: ({ runs }) => whole.format(runs) },
      { title: "Failed", cell: ({ failed }) => whole.format(failed) },
      { title: "Median", from: "sm", cell: ({ p50_ms: ms }) => timeOf(ms) },
      { title: "95th percentile", from: "sm", cell: ({ p95_ms: ms }) => timeOf(ms) },
      { title: "Records", from: "md", cell: ({ records }) => whole.format(records) },
    ]}
  />
);
