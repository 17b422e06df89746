import { Anchor, Paper, Table, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import type { ListedRun } from "../parts/answers.ts";
import { listRuns } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { RunStatusMark } from "../parts/run-status.tsx";
import { Elapsed, Time } from "../parts/time.tsx";
import { readRunFilters, RunFilters } from "./run-filters.tsx";

export function RunListPage() {
  const [search] = useSearchParams();
  const filters = readRunFilters(search);
  const cursor = search.get("cursor") ?? undefined;
  const runs = useRead(listRuns, { query: { ...filters, cursor } }, { live: cursor === undefined });
  return (
    <>
      <PageHead title="Runs" about="Every execution of a Blueprint, newest first." />
      <RunFilters />
      <Reading of={runs}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <NoRuns isFiltered={Object.keys(filters).length > 0} />
          ) : (
            <>
              <RunTable runs={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState title="No runs match these filters">Try fewer filters or another time range.</EmptyState>
    );
  return (
    <EmptyState
      title="No runs yet"
      command={
        'curl -X POST "$LATCHKEY_URL/api/v1/blueprints/<key>/trigger" \\\n  -H "Authorization: Bearer $LATCHKEY_API_KEY" \\\n  -H "Content-Type: application/json" -d \'{}\''
      }
    >
      A run starts when a customer's backend triggers a Blueprint with an API key.
    </EmptyState>
  );
}

export function RunTable({ runs }: { readonly runs: readonly ListedRun[] }) {
  return (
    <Paper withBorder radius="lg" className="table-card">
      <Table highlightOnHover verticalSpacing="sm" horizontalSpacing="md">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Run</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th visibleFrom="md">Account</Table.Th>
            <Table.Th visibleFrom="xs">Triggered</Table.Th>
            <Table.Th visibleFrom="md">Duration</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

function RunRow({ run }: { readonly run: ListedRun }) {
  return (
    <Table.Tr>
      <Table.Td className="cell-main">
        <Anchor component={Link} href={`/runs/${run.id}`} fw={600} size="sm" className="any-break">
          {run.name ?? run.id}
        </Anchor>
        <Text size="xs" c="dimmed" className="any-break">
          {run.blueprint === null ? "Test login" : `${run.blueprint} · version ${run.blueprint_version}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <RunStatusMark status={run.status} step={run.progress_step} />
        {run.failure !== null && (
          <Text size="xs" c="dimmed">
            {run.failure}
          </Text>
        )}
        <Text size="xs" c="dimmed" hiddenFrom="xs">
          <Time at={run.created_at} />
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">{run.account}</Table.Td>
      <Table.Td visibleFrom="xs">
        <Time at={run.created_at} />
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Elapsed from={run.created_at} to={run.ended_at} />
      </Table.Td>
    </Table.Tr>
  );
}
