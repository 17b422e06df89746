import { Anchor, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import { PROPOSAL_STATE_NAMES as names } from "#domain/labels/states.ts";
import { listProposals } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import type { ListedProposal } from "../parts/answers.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

export const PROPOSAL_STATES: Readonly<
  Record<ListedProposal["status"], readonly [tone: string, name: string]>
> = {
  open: ["waiting", names.open],
  confirmed: ["waiting", names.confirmed],
  applied: ["good", names.applied],
  discarded: ["quiet", names.discarded],
  expired: ["quiet", names.expired],
  stale: ["bad", names.stale],
};

export function ProposalListPage() {
  const [search] = useSearchParams();
  const isAll = search.get("all") === "1";
  const query = { ...useListQuery(), waiting: isAll ? undefined : true };
  const proposals = useRead(listProposals, { query }, { live: true });
  return (
    <>
      <PageHead
        title="Proposals"
        about="Changes to where credentials go, in accounts that require two admins for them."
      >
        <Anchor component={Link} href={isAll ? "/proposals" : "/proposals?all=1"} size="sm">
          {isAll ? "Show open" : "Show all"}
        </Anchor>
      </PageHead>
      <AccountFilter />
      <Reading of={proposals}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No open proposals">
              Where an account says <code>two_person: true</code>, a change that decides where its credentials
              go is here until another admin confirms it.
            </EmptyState>
          ) : (
            <>
              <ProposalTable proposals={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

function ProposalTable({ proposals }: { readonly proposals: readonly ListedProposal[] }) {
  return (
    <DataTable
      name="Proposals"
      rows={proposals}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Change",
          cell: ({ id, reasons, account }) => (
            <>
              <Anchor component={Link} href={`/proposals/${id}`} size="sm" fw={600} className="any-break">
                {reasons[0]}
              </Anchor>
              <Text size="xs" c="dimmed">
                {account}
                {reasons.length > 1 && `, and ${reasons.length - 1} more`}
              </Text>
            </>
          ),
        },
        {
          title: "State",
          cell: ({ status }) => {
            const [tone, name] = PROPOSAL_STATES[status];
            return <Mark tone={tone}>{name}</Mark>;
          },
        },
        { title: "Proposed by", from: "sm", cell: ({ proposed_by: by }) => by ?? "CLI" },
        { title: "Proposed", from: "sm", cell: ({ created_at: at }) => <Time at={at} /> },
        { title: "Expires", from: "md", cell: ({ expires_at: at }) => <Time at={at} /> },
      ]}
    />
  );
}
