import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { listRuns } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { RunTable } from "./run-table.tsx";

/** The newest runs of what a page shows; nothing if there are none. */
export function LatestRuns({
  of,
  limit,
}: {
  readonly of: Readonly<Record<"credential", string> | Record<"account", string>> & {
    readonly blueprint?: string;
  };
  readonly limit: number;
}) {
  const runs = useRead(listRuns, { query: { ...of, limit } }, { live: true });
  if (runs.data?.items.length === 0) return null;
  return (
    <Section
      title="Latest runs"
      isBare
      actions={
        <Anchor component={Link} href={`/runs?${new URLSearchParams(of)}`} size="sm">
          View all runs
        </Anchor>
      }
    >
      <Reading of={runs}>
        {({ items }) => <RunTable runs={items} isOfBlueprint={of.blueprint !== undefined} />}
      </Reading>
    </Section>
  );
}
