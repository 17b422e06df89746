import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import { listAccounts } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";

export function AccountListPage() {
  const accounts = useRead(listAccounts, {});
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
                  cell: ({ account, name }) => (
                    <>
                      <Anchor component={Link} href={`/accounts/${account}`} fw={600} size="sm">
                        {name}
                      </Anchor>
                      <Text size="xs" c="dimmed">
                        {account}
                      </Text>
                    </>
                  ),
                },
                { title: "ID", from: "md", cell: ({ id }) => id },
                { title: "Created", from: "sm", cell: ({ created_at: at }) => <Time at={at} /> },
                { title: "Changed", cell: ({ updated_at: at }) => <Time at={at} /> },
              ]}
            />
          )
        }
      </Reading>
    </>
  );
}
