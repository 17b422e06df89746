import { Anchor, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import { othersOf } from "#domain/labels/customer.ts";
import type { SessionStatus } from "#domain/credential-session.ts";
import { SESSION_STATE_NAMES } from "#domain/labels/states.ts";
import { listCredentialSessions } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable, type Column } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Mark } from "../parts/run-status.tsx";
import { References } from "../parts/references.tsx";
import { Reading } from "../parts/reading.tsx";
import { StateFilter } from "../parts/state-filter.tsx";
import { Time } from "../parts/time.tsx";
import { SessionState } from "./session-state.tsx";

type Session = AnswerOf<typeof listCredentialSessions>["items"][number];

const STATES = Object.entries(SESSION_STATE_NAMES) as readonly (readonly [SessionStatus, string])[];

const COLUMNS: readonly Column<Session>[] = [
  {
    title: "Session",
    cell: ({ id, name, metadata }) => (
      <>
        <Named
          name={
            <Anchor component={Link} href={`/sessions/${id}`} fw={600} size="sm">
              {name ?? "No label"}
            </Anchor>
          }
          id={id}
          of={name ?? id}
        />
        <References of={metadata && Object.fromEntries(othersOf(metadata))} />
      </>
    ),
  },
  {
    title: "State",
    cell: (session) => <SessionState of={session} />,
  },
  { title: "Customer", from: "sm", cell: ({ customer }) => customer ?? "–" },
  {
    title: "Link",
    from: "sm",
    cell: ({ opened_at: at, completed_at: done, status }) => {
      if (at !== null)
        return (
          <>
            Opened <Time at={at} isShort />
          </>
        );
      // It was sent without a look at the form.
      if (done !== null) return "Used";
      return status === "pending" ? <Mark tone="waiting">Not opened yet</Mark> : "Never opened";
    },
  },
  {
    title: "Created",
    from: "xs",
    cell: ({ created_at: at, created_by: by }) => (
      <>
        <Time at={at} />
        {by !== null && (
          <Text size="xs" c="dimmed">
            by {by}
          </Text>
        )}
      </>
    ),
  },
  {
    title: "Completed, or expires",
    from: "md",
    cell: ({ completed_at: done, expires_at: at, credential_id: credential }) =>
      done === null ? (
        <>
          expires <Time at={at} />
        </>
      ) : (
        <>
          <Time at={done} />
          {credential !== null && (
            <Text size="xs" component="div">
              <Anchor component={Link} href={`/credentials/${credential}`} size="xs">
                Its credential
              </Anchor>
            </Text>
          )}
        </>
      ),
  },
  { title: "Strategy", from: "md", cell: ({ strategy }) => <span className="no-wrap">{strategy}</span> },
];

export function SessionListPage() {
  const [search] = useSearchParams();
  const given = search.get("state");
  const state = STATES.find(([each]) => each === given)?.[0];
  const sessions = useRead(listCredentialSessions, { query: { ...useListQuery(), state } }, { live: true });
  return (
    <>
      <PageHead title="Sessions" about="Links to hosted forms. Each collects one credential." />
      <search className="filters" aria-label="Filters">
        <StateFilter options={STATES} />
        <AccountFilter mb={0} />
      </search>
      <Reading of={sessions}>
        {({ items, next_cursor: next }) =>
          items.length === 0 && state !== undefined ? (
            <EmptyState title="No sessions match">Try any state.</EmptyState>
          ) : items.length === 0 ? (
            <EmptyState
              title="No sessions yet"
              command={
                'curl -X POST "$LATCHKEY_URL/api/v1/credential-sessions" \\\n  -H "Authorization: Bearer $LATCHKEY_API_KEY" \\\n  -H "Content-Type: application/json" -d \'{"strategy_id": "strat_…"}\''
              }
            >
              An account&apos;s backend creates one with an API key and sends its end user to the link.
            </EmptyState>
          ) : (
            <>
              <DataTable name="Sessions" rows={items} keyOf={({ id }) => id} columns={COLUMNS} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}
