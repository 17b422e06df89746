import { Anchor, Button, Text } from "@mantine/core";
import { Link } from "wouter";
import { RETIRED_NAME } from "#domain/labels/states.ts";
import { listSecrets, listStrategies, readOverview } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

/** How the last logins of its credentials went. */
function Logins({
  of: failing,
  lacks,
}: {
  readonly of: Overview["failing_logins"][number] | undefined;
  /** Whether it lacks an account secret, without which no login works. */
  readonly lacks: boolean;
}) {
  if (lacks) return <Mark tone="bad">Secret missing</Mark>;
  if (failing === undefined) return <Mark tone="quiet">None rejected</Mark>;
  const { credentials, locked } = failing;
  return (
    <Mark tone={locked > 0 ? "bad" : "waiting"}>
      {locked > 0 ? `${locked} locked` : `${credentials} rejected`}
    </Mark>
  );
}

/** How the logins of a strategy go. */
function useLogins() {
  const { may } = useSignedIn();
  const problems = useRead(listSecrets, { query: {} }, { enabled: may("secret.read") }).data?.problems ?? [];
  const failing = useRead(readOverview, {}, { live: true }).data?.failing_logins ?? [];
  return (strategy: { readonly account: string; readonly id: string }) => {
    const isIts = (each: { readonly account: string; readonly strategy: string }): boolean =>
      each.account === strategy.account && each.strategy === strategy.id;
    const lacks = problems.some((each) => isIts(each) && each.kind !== "variable");
    return <Logins of={failing.find(isIts)} lacks={lacks} />;
  };
}

export function StrategyListPage() {
  const { may } = useSignedIn();
  const strategies = useRead(listStrategies, { query: useListQuery() });
  const loginsOf = useLogins();
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
