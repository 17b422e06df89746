import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { listAccounts, listReviews } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { AccountViews } from "../parts/account-views.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import { AccountTrouble } from "./account-trouble.tsx";

export function AccountListPage() {
  const accounts = useRead(listAccounts, {});
  const reviews = useRead(listReviews, {}, { live: true });
  const reviewsOf = (name: string) =>
    (reviews.data?.items ?? []).filter(({ account }) => account === name).length;
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
                  title: "Open reviews",
                  from: "sm",
                  isFigure: true,
                  cell: ({ account }) => <OpenReviews account={account} count={reviewsOf(account)} />,
                },
                {
                  title: "Last 24 hours",
                  from: "sm",
                  cell: ({ account }) => <AccountTrouble account={account} />,
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

function OpenReviews({ account, count }: { readonly account: string; readonly count: number }) {
  if (count === 0) return "0";
  return (
    <Anchor component={Link} href={`/reviews?${new URLSearchParams({ account })}`} size="sm">
      {count}
    </Anchor>
  );
}
