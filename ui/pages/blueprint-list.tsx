import { Anchor, Button, Text } from "@mantine/core";
import { Link } from "wouter";
import { RETIRED_NAME } from "#domain/labels/states.ts";
import { listBlueprints } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { Applied } from "../parts/applied.tsx";
import { DataTable, type Column } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark, RunStatusMark } from "../parts/run-status.tsx";
import { ratioOf } from "../parts/success-rate.ts";
import { Time } from "../parts/time.tsx";

type Blueprint = AnswerOf<typeof listBlueprints>["items"][number];

const COLUMNS: readonly Column<Blueprint>[] = [
  {
    title: "Blueprint",
    cell: ({ account, key, name, retired }) => (
      <>
        <Anchor component={Link} href={`/blueprints/${account}/${key}`} fw={600} size="sm">
          {name}
        </Anchor>
        <Text size="xs" c="dimmed" component="div">
          {key} {retired && <Mark tone="quiet">{RETIRED_NAME}</Mark>}
        </Text>
      </>
    ),
  },
  { title: "Account", from: "sm", cell: ({ account }) => account },
  { title: "Version", from: "xs", cell: ({ version }) => version },
  {
    title: "Last run",
    cell: ({ last_run: run }) =>
      run === null ? (
        <Text size="sm" c="dimmed">
          Never run
        </Text>
      ) : (
        <Anchor component={Link} href={`/runs/${run.id}`} size="sm">
          <RunStatusMark status={run.status} step={run.progress_step} /> <Time at={run.created_at} />
        </Anchor>
      ),
  },
  {
    title: "Completed, of the last runs",
    from: "md",
    cell: ({ recent_runs: recent }) => <Recent of={recent} />,
  },
  {
    title: "Published",
    from: "md",
    cell: (each) => <Applied of={each} />,
  },
];

/** Of 20 runs one may fail. */
const GOOD_MIN = 0.95;
const WAITING_MIN = 0.8;

const toneOf = (share: number): string =>
  share >= GOOD_MIN ? "good" : share >= WAITING_MIN ? "waiting" : "bad";

/** The share of runs that ended by themselves, and of how many. */
function Recent({ of: { completed, failed } }: { readonly of: Blueprint["recent_runs"] }) {
  const ended = completed + failed;
  if (ended === 0) return <>–</>;
  return (
    <>
      <Mark tone={toneOf(completed / ended)}>{ratioOf({ completed, failed })}</Mark>
    </>
  );
}

export function BlueprintListPage() {
  const { may } = useSignedIn();
  const blueprints = useRead(listBlueprints, { query: useListQuery() });
  return (
    <>
      <PageHead
        title="Blueprints"
        about="Workflows that runs execute. Each is a graph of nodes with immutable versions."
      >
        {may("config.apply") && (
          <Button component={Link} href="/blueprints/new">
            New Blueprint
          </Button>
        )}
      </PageHead>
      <AccountFilter />
      <Reading of={blueprints}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No Blueprints yet" command="latchkey apply -f examples">
              Write one here with “New Blueprint”, or apply a folder of documents.
            </EmptyState>
          ) : (
            <>
              <DataTable
                name="Blueprints"
                rows={items}
                keyOf={({ account, key }) => `${account}/${key}`}
                columns={COLUMNS}
              />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}
