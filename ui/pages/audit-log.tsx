import { Anchor, Button, Group, Paper, Text, TextInput } from "@mantine/core";
import { Fragment, type FormEvent } from "react";
import { Link, useSearchParams } from "wouter";
import type { AuditAction } from "#domain/audit-actions.ts";
import { exportAudit, listAudit } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { addressOf, type AnswerOf } from "../api/request.ts";
import { Copyable } from "../parts/copyable.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { AUDIT_ACTION_NAMES } from "./audit-actions.ts";
import { AuditCheck } from "./audit-check.tsx";
import { readDetail } from "./audit-detail.ts";
import styles from "./audit-log.module.css";

/** Of a long value, the tooltip and the export have all. */
const TEXT_MAX = 48;

type Entry = AnswerOf<typeof listAudit>["items"][number];

const FILTERS = [
  ["action", "Action", "run.cancel"],
  ["operator", "Operator", "ana@example.com"],
  ["subject", "Subject", "an ID"],
  ["account", "Account", "name"],
] as const;

export function AuditLogPage() {
  const [search] = useSearchParams();
  const given = (name: string): string | undefined => search.get(name) ?? undefined;
  const entries = useRead(listAudit, {
    query: {
      // The API rejects an unknown action.
      action: given("action") as AuditAction | undefined,
      operator: given("operator"),
      subject: given("subject"),
      account: given("account"),
      cursor: given("cursor"),
    },
  });
  return (
    <>
      <PageHead title="Audit log" about="A tamper-evident record of every action.">
        <Button
          component="a"
          variant="default"
          href={addressOf(exportAudit, { query: { account: given("account") } })}
          download
        >
          Export
        </Button>
      </PageHead>
      <AuditCheck />
      <AuditFilters />
      <Reading of={entries}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No entries match">Try fewer filters.</EmptyState>
          ) : (
            <>
              <EntryTable entries={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

function AuditFilters() {
  const [search, setSearch] = useSearchParams();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const next = new URLSearchParams();
    for (const [name, value] of new FormData(event.currentTarget))
      if (typeof value === "string" && value.trim() !== "") next.set(name, value.trim());
    setSearch(next);
  };
  return (
    <Paper withBorder radius="lg" p="md" mb="md">
      {/* Recreated when the URL changes, so that its fields show the current filter. */}
      <form key={search.toString()} onSubmit={submit} aria-label="Filters">
        <div className="filters" data-open="true">
          {FILTERS.map(([name, label, placeholder]) => (
            <TextInput
              key={name}
              name={name}
              label={label}
              placeholder={placeholder}
              defaultValue={search.get(name) ?? ""}
            />
          ))}
          <Group gap="xs">
            <Button type="submit" variant="default">
              Filter
            </Button>
            {search.size > 0 && (
              <Button variant="subtle" onClick={() => setSearch(new URLSearchParams())}>
                Clear
              </Button>
            )}
          </Group>
        </div>
      </form>
    </Paper>
  );
}

/** In a narrow column, wraps the action between its words. */
const wordsOf = (action: string) =>
  action.split(/(?<=[._])/).map((word) => (
    <Fragment key={word}>
      {word}
      <wbr />
    </Fragment>
  ));

function EntryTable({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <DataTable
      name="Audit log"
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Action",
          cell: ({ action, subject_id: subject }) => (
            <Named
              name={AUDIT_ACTION_NAMES[action as AuditAction] ?? wordsOf(action)}
              below={
                <>
                  {wordsOf(action)}
                  <Text size="xs" component="div">
                    <Copyable text={subject} shown={shortId(subject)} name={`the ID ${subject}`} />
                  </Text>
                </>
              }
            />
          ),
        },
        {
          title: "Actor",
          cell: (entry) => (
            <>
              <Text size="sm">{entry.operator ?? entry.actor_kind.replace("_", " ")}</Text>
              {entry.operator === null && entry.actor_id !== null && (
                <Text size="xs" c="dimmed">
                  <span title={entry.actor_id}>{shortId(entry.actor_id)}</span>
                </Text>
              )}
            </>
          ),
        },
        { title: "When", from: "xs", cell: ({ occurred_at: at }) => <Time at={at} /> },
        {
          title: "Detail",
          from: "md",
          cell: (entry) => <Detail of={entry} />,
        },
        {
          title: "Chain",
          from: "md",
          cell: ({ account, sequence }) => (
            <>
              <Text size="sm" className={account === null ? "no-wrap" : ""}>
                {account ?? "installation"}
              </Text>
              <Text size="xs" c="dimmed">
                {sequence === null ? "no number yet" : `no. ${sequence}`}
              </Text>
            </>
          ),
        },
      ]}
    />
  );
}

function Detail({ of: { detail, run_id: run } }: { readonly of: Entry }) {
  return (
    <>
      <dl className={styles["detail"]}>
        {readDetail(detail).map(({ name, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={text}>{text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</dd>
          </div>
        ))}
      </dl>
      {run !== null && (
        <Anchor component={Link} href={`/runs/${run}`} size="xs" display="block">
          Show run
        </Anchor>
      )}
    </>
  );
}
