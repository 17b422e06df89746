import { Anchor, Group } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import type { CredentialState as Sought } from "#domain/credential-state.ts";
import { CREDENTIAL_STATE_NAMES } from "#domain/labels/states.ts";
import { listCredentials } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable, type Column } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { StateFilter } from "../parts/state-filter.tsx";
import { SearchField } from "../parts/search-field.tsx";
import { Time } from "../parts/time.tsx";
import { CredentialActions, CredentialState, NewLinkButton } from "./credential-parts.tsx";

type Credential = AnswerOf<typeof listCredentials>["items"][number];

export function CredentialListPage() {
  const [search] = useSearchParams();
  const q = search.get("q") ?? undefined;
  const given = search.get("state");
  const state = STATES.find(([each]) => each === given)?.[0];
  const credentials = useRead(
    listCredentials,
    { query: { ...useListQuery(), q, state, strategy: search.get("strategy") ?? undefined } },
    { live: true },
  );
  return (
    <>
      <PageHead title="Credentials" about="End users' logins, encrypted. Values are never shown." />
      <search className="filters" aria-label="Filters">
        <SearchField label="Label or ID" placeholder="Part of either" />
        <StateFilter options={STATES} />
        <AccountFilter mb={0} />
      </search>
      <Reading of={credentials}>
        {({ items, next_cursor: next }) =>
          items.length === 0 && (q !== undefined || state !== undefined) ? (
            <EmptyState title="No credentials match">Try another part of the label, or any state.</EmptyState>
          ) : items.length === 0 ? (
            <EmptyState title="No credentials yet">
              An end user creates one by filling in a hosted form. An account&apos;s backend creates the link
              to it with <code>POST /api/v1/credential-sessions</code>; it then appears under Sessions.
            </EmptyState>
          ) : (
            <>
              <CredentialTable credentials={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

const STATES: readonly (readonly [state: Sought, name: string])[] = [
  ["locked", CREDENTIAL_STATE_NAMES.locked],
  ["rejected", "Last login rejected"],
];

const STRATEGY_COLUMN: Column<Credential> = {
  title: "Strategy",
  from: "sm",
  cell: ({ account, strategy }) => (
    <Anchor component={Link} href={`/strategies/${account}/${strategy}`} size="sm" className="no-wrap">
      {strategy}
    </Anchor>
  ),
};

export function CredentialTable(props: {
  readonly credentials: readonly Credential[];
  /** Whether the page says already whose they are. */
  readonly isOfStrategy?: boolean;
}) {
  const { credentials, isOfStrategy = false } = props;
  return (
    <DataTable
      name="Credentials"
      rows={credentials}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Credential",
          cell: ({ id, name }) => (
            <Named
              name={
                <Anchor component={Link} href={`/credentials/${id}`} fw={600} size="sm">
                  {name ?? "No label"}
                </Anchor>
              }
              id={id}
              of={name ?? id}
            />
          ),
        },
        { title: "Customer", from: "sm", cell: ({ customer }) => customer ?? "–" },
        ...(isOfStrategy ? [] : [STRATEGY_COLUMN]),
        { title: "State", cell: (each) => <CredentialState of={each} /> },
        {
          title: "Last used",
          from: "md",
          cell: ({ last_run_id: run, last_run_at: at }) =>
            run === null || at === null ? (
              "never"
            ) : (
              <Anchor component={Link} href={`/runs/${run}`} size="sm" className="no-wrap">
                <Time at={at} isShort />
              </Anchor>
            ),
        },
        {
          title: "Created",
          from: "md",
          cell: ({ created_at: at }) => (
            <span className="no-wrap">
              <Time at={at} isShort />
            </span>
          ),
        },
        {
          title: "Actions",
          cell: (each) => (
            <Group gap="xs" wrap="nowrap">
              {each.login_rejections > 0 && <NewLinkButton of={each} isPrimary />}
              <CredentialActions of={each} />
            </Group>
          ),
        },
      ]}
    />
  );
}
