import { Group, List, Stack, Text } from "@mantine/core";
import { useParams } from "wouter";
import {
  confirmProposal,
  discardProposal,
  listAccounts,
  listProposals,
  readAccount,
  readOverview,
  readProposal,
} from "../api/operations.ts";
import { keyOf, useRead, useSignedIn } from "../api/queries.ts";
import type { Proposal } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Differences } from "../parts/differences.tsx";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { DOCUMENT_KEYS } from "../parts/publish-dialog.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";
import { PROPOSAL_STATES } from "./proposal-list.tsx";

const CHANGES = [
  keyOf(readProposal),
  keyOf(listProposals),
  keyOf(readOverview),
  keyOf(listAccounts),
  keyOf(readAccount),
  ...DOCUMENT_KEYS,
];

export function ProposalPage() {
  const { proposalId = "" } = useParams();
  const proposal = useRead(readProposal, { params: { proposalId } }, { live: true });
  return (
    <>
      {proposal.data === undefined && <PageHead title="Proposal" />}
      <Reading of={proposal}>{(data) => <ProposalDetail proposal={data} />}</Reading>
    </>
  );
}

function ProposalDetail({ proposal }: { readonly proposal: Proposal }) {
  const [tone, name] = PROPOSAL_STATES[proposal.status];
  return (
    <>
      <PageHead title={`Proposal for ${proposal.account}`} about={<Mark tone={tone}>{name}</Mark>}>
        <Decision proposal={proposal} />
      </PageHead>
      <Stack gap="lg">
        <Note tone="waiting" title="Why it needs two admins">
          <List size="sm">
            {proposal.reasons.map((reason) => (
              <List.Item key={reason}>{reason}</List.Item>
            ))}
          </List>
        </Note>
        <Facts
          of={[
            ["Proposed by", proposal.proposed_by ?? "CLI"],
            ["Proposed", <Time key="at" at={proposal.created_at} isExact />],
            ["Confirmed by", proposal.confirmed_by.join(", ") || "nobody yet"],
            ["Still needed", waitsFor(proposal)],
            ["Added origins", proposal.origins.join(", ") || "none"],
            ["Affected credentials", String(proposal.credentials)],
            ["Expires", <Time key="until" at={proposal.expires_at} isExact />],
          ]}
        />
        {proposal.documents.map(({ kind, account, id, is_new: isNew, differences }) => (
          <Section
            key={`${kind} ${id}`}
            title={`${isNew ? "Create" : "Change"} the ${kind} ${kind === "account" ? id : `${account}/${id}`}`}
          >
            <Differences of={differences} />
          </Section>
        ))}
        {proposal.rebindings.map(({ credential, strategy, before, after }) => (
          <Section key={credential} title={`Rebind ${credential}`}>
            <Text size="sm" c="dimmed">
              Strategy {strategy}
            </Text>
            <Differences
              of={[
                {
                  path: "origins",
                  before: before === null ? null : before.join(" "),
                  after: after.join(" "),
                },
              ]}
            />
          </Section>
        ))}
      </Stack>
    </>
  );
}

const waitsFor = ({ status, confirmations_wanted: wanted }: Proposal): string | null => {
  if (status === "confirmed") return "latchkey credentials rebind, on a machine with the master key";
  return status === "open" ? `${wanted} ${wanted === 1 ? "admin" : "different admins"}` : null;
};

function Decision({ proposal }: { readonly proposal: Proposal }) {
  const { may, email, role } = useSignedIn();
  const {
    id,
    status,
    kind,
    proposed_by: by,
    confirmed_by: confirmed,
    confirmations_wanted: wanted,
  } = proposal;
  const isOwn = by === email || confirmed.includes(email);
  const common = { input: { params: { proposalId: id } }, changes: CHANGES, of: "the proposal" };
  return (
    <Group gap="xs">
      {(status === "open" || status === "confirmed") &&
        may("proposal.discard") &&
        (role === "admin" || by === email) && (
          <AskButton
            {...common}
            to={discardProposal}
            label="Discard"
            isDanger
            title="Discard this proposal?"
            action="Discard"
            done="The proposal was discarded."
          >
            None of its changes are applied. They can be proposed again.
          </AskButton>
        )}
      {status === "open" && may("proposal.confirm") && !isOwn && (
        <AskButton
          {...common}
          to={confirmProposal}
          label="Confirm"
          title="Confirm this proposal?"
          action="Confirm"
          done="You have confirmed the proposal."
        >
          {effectOf(kind, wanted)}
        </AskButton>
      )}
      {status === "open" && isOwn && (
        <Text size="sm" c="dimmed">
          You have confirmed it. Another admin must confirm it too.
        </Text>
      )}
    </Group>
  );
}

function effectOf(kind: Proposal["kind"], wanted: number): string {
  if (wanted > 1) return "Another admin must confirm it too.";
  return kind === "documents"
    ? "All documents are applied immediately, or none of them."
    : "Within 24 hours, the credentials can be rebound to these origins once, with the CLI on a machine with the master key.";
}
