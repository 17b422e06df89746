import { Anchor, Checkbox, Paper, Table } from "@mantine/core";
import { Link } from "wouter";
import { othersOf } from "#domain/labels/customer.ts";
import { failureLine } from "#domain/labels/states.ts";
import type { ListedRun } from "../parts/answers.ts";
import { RunOutcomeMark } from "../parts/run-status.tsx";
import { runTitle } from "../parts/run-title.ts";
import { Elapsed, Time } from "../parts/time.tsx";
import styles from "./run-table.module.css";

/** The runs that are selected for an action. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly toggle: (ids: readonly string[], isSelected: boolean) => void;
}

interface TableProps {
  readonly runs: readonly ListedRun[];
  readonly selection?: Selection | undefined;
  /** Whether the page says already of which Blueprint they are. */
  readonly isOfBlueprint?: boolean;
}

/** The columns that not every table has. */
interface Shown {
  readonly references: boolean;
  readonly blueprint: boolean;
  readonly account: boolean;
}

/** Runs, one line each: for whom, of which Blueprint, in which state and why, and how old. */
export function RunTable({ runs, selection, isOfBlueprint = false }: TableProps) {
  const ids = runs.map(({ id }) => id);
  // An account that is the same in all rows says nothing, and takes the room of what does.
  const shown: Shown = {
    references: runs.some(({ metadata }) => othersOf(metadata).length > 0),
    blueprint: !isOfBlueprint,
    account: new Set(runs.map(({ account }) => account)).size > 1,
  };
  const isAll = selection !== undefined && ids.every((id) => selection.ids.has(id));
  return (
    <Paper withBorder radius="lg" className="table-card">
      <Table highlightOnHover className={styles["runs"] ?? ""} aria-label="Runs">
        <Table.Thead>
          <Table.Tr>
            {selection && (
              <Table.Th className={styles["check"] ?? ""}>
                <Checkbox
                  size="xs"
                  aria-label="Select all runs of this page"
                  checked={isAll}
                  indeterminate={!isAll && ids.some((id) => selection.ids.has(id))}
                  onChange={() => selection.toggle(ids, !isAll)}
                />
              </Table.Th>
            )}
            <Table.Th className={styles["name"] ?? ""}>Run</Table.Th>
            <Table.Th className={styles["customer"] ?? ""}>Customer</Table.Th>
            {shown.references && <Table.Th className={styles["references"] ?? ""}>Metadata</Table.Th>}
            {shown.blueprint && <Table.Th className={styles["blueprint"] ?? ""}>Blueprint</Table.Th>}
            {shown.account && <Table.Th className={styles["account"] ?? ""}>Account</Table.Th>}
            <Table.Th className={styles["state"] ?? ""}>Status</Table.Th>
            <Table.Th className={styles["age"] ?? ""}>Triggered</Table.Th>
            <Table.Th className={styles["took"] ?? ""}>Duration</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <RunRow key={run.id} run={run} selection={selection} shown={shown} />
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

function RunRow({
  run,
  selection,
  shown,
}: {
  readonly run: ListedRun;
  readonly selection: Selection | undefined;
  readonly shown: Shown;
}) {
  const others = othersOf(run.metadata);
  const title = runTitle(run);
  const blueprint = run.blueprint ?? (run.is_sign_in ? "Sign-in" : "Test login");
  return (
    <Table.Tr>
      {selection && (
        <Table.Td className={styles["check"] ?? ""}>
          <Checkbox
            size="xs"
            aria-label={`Select ${run.name ?? run.id}`}
            checked={selection.ids.has(run.id)}
            onChange={(event) => selection.toggle([run.id], event.currentTarget.checked)}
          />
        </Table.Td>
      )}
      <Table.Td className={styles["name"] ?? ""}>
        <Anchor component={Link} href={`/runs/${run.id}`} fw={600} size="sm" title={run.name ?? run.id}>
          {title}
        </Anchor>
      </Table.Td>
      <Table.Td className={styles["customer"] ?? ""} title={run.customer ?? undefined}>
        {run.customer}
      </Table.Td>
      {shown.references && (
        <Table.Td className={styles["references"] ?? ""} title={metadataText(run.metadata)}>
          {others.map(([, value]) => value).join(" · ")}
        </Table.Td>
      )}
      {shown.blueprint && (
        <Table.Td className={styles["blueprint"] ?? ""} title={blueprint}>
          {blueprint}
        </Table.Td>
      )}
      {shown.account && (
        <Table.Td className={styles["account"] ?? ""} title={run.account}>
          {run.account}
        </Table.Td>
      )}
      <Table.Td className={styles["state"] ?? ""} title={run.failure_detail ?? undefined}>
        <RunOutcomeMark of={run} /> <span className={styles["quiet"]}>{reasonOf(run)}</span>
      </Table.Td>
      <Table.Td className={styles["age"] ?? ""}>
        <Time at={run.created_at} isShort />
      </Table.Td>
      <Table.Td className={styles["took"] ?? ""}>
        <Elapsed from={run.created_at} to={run.ended_at} />
      </Table.Td>
    </Table.Tr>
  );
}

const reasonOf = ({ failure_detail: detail }: ListedRun): string | null =>
  detail === null ? null : failureLine(detail);

const metadataText = (metadata: ListedRun["metadata"]): string =>
  Object.entries(metadata)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
