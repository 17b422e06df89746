import { Button, Group, SegmentedControl } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useSearchParams } from "wouter";

import { listRuns } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { ListedRun } from "../parts/answers.ts";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { FailureGroups } from "./failure-groups.tsx";
import { RunFilters, useRunFilters } from "./run-filters.tsx";
import { RunTable, type Selection } from "./run-table.tsx";

const RunBulk = lazy(async () => ({ default: (await import("./run-bulk.tsx")).RunBulk }));

export function RunListPage() {
  const [search, setSearch] = useSearchParams();
  // Not where the list is read: an ended session fails that first.
  const { may } = useSignedIn();
  const isGrouped = search.get("by") === "error";
  return (
    <>
      <PageHead title="Runs" about="Every execution of a Blueprint, newest first.">
        <SegmentedControl
          aria-label="How runs are listed"
          value={isGrouped ? "error" : "run"}
          onChange={(by) =>
            setSearch((before) => {
              const after = new URLSearchParams(before);
              if (by === "error") after.set("by", "error");
              else after.delete("by");
              return after;
            })
          }
          data={[
            { value: "run", label: "By run" },
            { value: "error", label: "By error" },
          ]}
        />
      </PageHead>
      <RunFilters />
      {isGrouped ? <FailureGroups /> : <FoundRuns mayAct={may("run.trigger") || may("run.cancel")} />}
    </>
  );
}

function FoundRuns({ mayAct }: { readonly mayAct: boolean }) {
  const [search] = useSearchParams();
  const filters = useRunFilters();
  const cursor = search.get("cursor") ?? undefined;
  const runs = useRead(listRuns, { query: { ...filters, cursor } }, { live: cursor === undefined });
  const [chosen, setChosen] = useState<ReadonlyMap<string, ListedRun>>(new Map());
  const selectionOf = (items: readonly ListedRun[]): Selection => ({
    ids: new Set(chosen.keys()),
    toggle: (ids, isSelected) =>
      setChosen((before) => {
        const after = new Map(before);
        for (const run of items.filter(({ id }) => ids.includes(id)))
          if (isSelected) after.set(run.id, run);
          else after.delete(run.id);
        return after;
      }),
  });
  return (
    <Reading of={runs}>
      {({ items, next_cursor: next }) =>
        items.length === 0 ? (
          <NoRuns isFiltered={Object.keys(filters).length > 0} />
        ) : (
          <>
            {chosen.size > 0 && (
              <Suspense>
                <RunBulk
                  runs={[...chosen.values()].map((run) => items.find(({ id }) => id === run.id) ?? run)}
                  onClear={() => setChosen(new Map())}
                />
              </Suspense>
            )}
            <RunTable
              runs={items}
              selection={mayAct ? selectionOf(items) : undefined}
              isOfBlueprint={filters.blueprint !== undefined}
            />
            <Pager next={next} />
          </>
        )
      }
    </Reading>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  const [, setSearch] = useSearchParams();
  if (isFiltered)
    return (
      <EmptyState title="No runs match these filters">
        Try fewer filters or another time range.
        <Group justify="center" mt="sm">
          <Button variant="default" size="xs" onClick={() => setSearch({})}>
            Clear filters
          </Button>
        </Group>
      </EmptyState>
    );
  return (
    <EmptyState
      title="No runs yet"
      command={
        'curl -X POST "$LATCHKEY_URL/api/v1/blueprints/<key>/trigger" \\\n  -H "Authorization: Bearer $LATCHKEY_API_KEY" \\\n  -H "Content-Type: application/json" -d \'{}\''
      }
    >
      A run starts when an account's backend triggers a Blueprint with an API key.
    </EmptyState>
  );
}
