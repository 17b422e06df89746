import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { listAccounts, readOverview } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { AccountViews } from "../parts/account-views.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

export function AccountListPage() {
  const accounts = useRead(listAccounts, {});
  const overview = useRead(readOverview, {}, { live: true });
  return (
    <>
      <PageHead
        title="Accounts"
        about="Each account has its own API keys, strategies, Blueprints and runs."
      />
      <Reading of={accounts}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              title="No accounts yet"
              command={'echo "account: acme" > acme.yaml\nlatchkey apply -f acme.yaml'}
            >
              An account is a document, in its shortest form a single line.
            </EmptyState>
          ) : (
            <DataTable
              name="Accounts"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: "Account",
                  cell: ({ id, account, name }) => (
                    <Named
                      name={
                        <Anchor component={Link} href={`/accounts/${account}`} fw={600} size="sm">
                          {name}
                        </Anchor>
                      }
                      id={id}
                      of={name}
                    />
                  ),
                },
                { title: "Short name", from: "sm", cell: ({ account }) => account },
                {
                  title: "Last 24 hours",
                  from: "sm",
                  cell: ({ account }) => <Trouble of={troubleOf(overview.data, account)} />,
                },
                {
                  title: "Look at",
                  cell: ({ account, name }) => <AccountViews account={account} name={name} />,
                },
                { title: "Changed", from: "md", cell: ({ updated_at: at }) => <Time at={at} /> },
              ]}
            />
          )
        }
      </Reading>
    </>
  );
}

/** How many of its runs failed in the last 24 hours, and how many of its credentials are locked at present. */
function troubleOf(overview: Overview | undefined, name: string) {
  const own = <T extends { readonly account: string }>(of: readonly T[]): readonly T[] =>
    of.filter(({ account }) => account === name);
  return {
    failed: own(overview?.failures ?? []).reduce((sum, { runs }) => sum + runs, 0),
    locked: own(overview?.failing_logins ?? []).reduce((sum, { locked }) => sum + locked, 0),
  };
}

function Trouble({ of: { failed, locked } }: { readonly of: ReturnType<typeof troubleOf> }) {
  if (failed === 0 && locked === 0) return <Mark tone="quiet">Nothing failed</Mark>;
  const parts = [
    ...(failed === 0 ? [] : [`${failed} ${failed === 1 ? "run" : "runs"} failed`]),
    ...(locked === 0 ? [] : [`${locked} ${locked === 1 ? "credential" : "credentials"} locked`]),
  ];
  return <Mark tone="bad">{parts.join(", ")}</Mark>;
}
