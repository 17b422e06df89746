import { Anchor, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import { failureLine, failureName } from "#domain/labels/states.ts";
import { listFailures } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import { runsOfGroup } from "./failure-link.ts";
import { useRunFilters } from "./run-filters.tsx";

/** Why runs failed, the most frequent reason first; each leads to its runs. */
export function FailureGroups() {
  const [search] = useSearchParams();
  const { account, blueprint, since } = useRunFilters();
  const groups = useRead(listFailures, { query: { account, blueprint, since } }, { live: true });
  return (
    <Reading of={groups}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState title="Nothing has failed">Reasons of failed runs are listed here.</EmptyState>
        ) : (
          <DataTable
            name="Failures by reason"
            rows={items}
            keyOf={({ account: of, blueprint, error, failure }) => `${of} ${blueprint} ${failure} ${error}`}
            columns={[
              {
                title: "Reason",
                cell: (group) => (
                  <>
                    <Anchor component={Link} href={runsOfGroup(group, search.get("last"))} fw={600} size="sm">
                      {failureName(group.failure)}
                    </Anchor>
                    <Text size="sm" lineClamp={2}>
                      {group.last_detail === null ? null : failureLine(group.last_detail)}
                    </Text>
                  </>
                ),
              },
              {
                title: "Blueprint",
                from: "sm",
                cell: (group) => `${group.blueprint ?? "Test login"} · ${group.account}`,
              },
              { title: "Customers", from: "md", cell: ({ customers }) => customers.join(", ") || "–" },
              { title: "Runs", isFigure: true, cell: ({ runs }) => runs.toLocaleString("en") },
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
        )
      }
    </Reading>
  );
}
