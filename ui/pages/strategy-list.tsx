import { Anchor, Button, Text } from "@mantine/core";
import { Link } from "wouter";
import { RETIRED_NAME } from "#domain/labels/states.ts";
import { listStrategies } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";
import { useStrategyLogins } from "./strategy-logins.tsx";

export function StrategyListPage() {
  const { may } = useSignedIn();
  const strategies = useRead(listStrategies, { query: useListQuery() });
  const loginsOf = useStrategyLogins();
  return (
    <>
      <PageHead
        title="Strategies"
        about="How to log in to a system: the fields, the steps and the allowed hosts."
      >
        {may("config.apply") && (
          <Button component={Link} href="/strategies/new">
            New strategy
          </Button>
        )}
      </PageHead>
      <AccountFilter />
      <Reading of={strategies}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No strategies yet" command="latchkey new strategy acme">
              A strategy defines the form that collects a credential. Write one with “New strategy”.
            </EmptyState>
          ) : (
            <>
              <DataTable
                name="Strategies"
                rows={items}
                keyOf={({ account, id }) => `${account}/${id}`}
                columns={[
                  {
                    title: "Strategy",
                    cell: ({ account, id, name, retired }) => (
                      <>
                        <Anchor component={Link} href={`/strategies/${account}/${id}`} fw={600} size="sm">
                          {name}
                        </Anchor>
                        <Text size="xs" c="dimmed" component="div">
                          {id} {retired && <Mark tone="quiet">{RETIRED_NAME}</Mark>}
                        </Text>
                      </>
                    ),
                  },
                  { title: "Account", from: "sm", cell: ({ account }) => account },
                  { title: "Login", cell: ({ login_type: type }) => type },
                  { title: "Allowed hosts", from: "sm", cell: ({ hosts }) => hosts.join(", ") || "none" },
                  {
                    title: "Logins at present",
                    from: "sm",
                    cell: loginsOf,
                  },
                  { title: "Published", from: "md", cell: ({ applied_at: at }) => <Time at={at} /> },
                ]}
              />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}
