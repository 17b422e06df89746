import { Anchor, Button, Code, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { decideWriteGroup, listWriteGroups } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import type { DecidedWrites, WriteGroup } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import { DECIDED, SingleWrites } from "./write-table.tsx";

export function WriteListPage() {
  const { account } = useListQuery();
  const groups = useRead(listWriteGroups, { query: { account } }, { live: true });
  return (
    <>
      <PageHead
        title="Uncertain writes"
        about="Requests to other systems that may have succeeded. Check there, then decide: nothing is sent again before."
      />
      <AccountFilter />
      <Reading of={groups}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No uncertain writes">
              When the response to a write is lost or is not the expected one, its run waits and the write is
              listed here.
            </EmptyState>
          ) : (
            <Stack component="ul" gap="md" className="plain-list">
              {items.map((group) => (
                <GroupCard key={`${group.account}/${group.blueprint}/${group.node}`} of={group} />
              ))}
            </Stack>
          )
        }
      </Reading>
    </>
  );
}

function GroupCard({ of: group }: { readonly of: WriteGroup }) {
  const { may } = useSignedIn();
  const [isOpen, setIsOpen] = useState(false);
  const { account, blueprint, node, writes, runs, since, detail, sent } = group;
  return (
    <Paper component="li" withBorder radius="lg" p="md">
      <Stack gap="md">
        <Group justify="space-between" align="flex-start" gap="sm">
          <div className="grow">
            <Title order={2} size="h3" className="any-break">
              <Anchor component={Link} href={`/blueprints/${account}/${blueprint}`} inherit>
                {blueprint}
              </Anchor>
              , node {node}
            </Title>
            <Text size="sm" c="dimmed" className="any-break">
              {account}
            </Text>
          </div>
          {may("write.decide") && <Decisions of={group} />}
        </Group>
        <Facts
          of={[
            ["Writes", `${writes} of ${runs === 1 ? "one run" : `${runs} runs`}`],
            ["Oldest", <Time key="since" at={since} />],
            ["Reason", detail],
          ]}
        />
        {sent !== null && (
          <div>
            <Text size="sm" fw={600} mb={4}>
              Oldest request, without secrets
            </Text>
            <Code block tabIndex={0} className="any-break wrapped">
              {sent}
            </Code>
          </div>
        )}
        <div>
          <Button
            variant="default"
            size="xs"
            aria-expanded={isOpen}
            onClick={() => setIsOpen(!isOpen)}
            aria-label={`${isOpen ? "Hide" : "Show"} writes of ${blueprint}, node ${node}`}
          >
            {isOpen ? "Hide writes" : "Show writes"}
          </Button>
        </div>
        {isOpen && <SingleWrites of={group} />}
      </Stack>
    </Paper>
  );
}

function Decisions({ of: group }: { readonly of: WriteGroup }) {
  const { account, blueprint, node, writes, runs } = group;
  const name = `${blueprint}, node ${node}`;
  const all = writes === 1 ? "the write" : `all ${writes} writes`;
  const body = { account, blueprint, node };
  return (
    <Group gap="xs">
      <AskButton
        to={decideWriteGroup}
        input={{ body: { ...body, happened: true } }}
        changes={DECIDED}
        label="They happened"
        of={name}
        title={`${writes === 1 ? "Did it happen" : `Did all ${writes} happen`}?`}
        action={writes === 1 ? "It happened" : "They happened"}
        done={(decided) => describeDecided(decided, true)}
      >
        Count {all} of <b>{name}</b> as done, in {runs === 1 ? "one run" : `${runs} runs`}. The runs continue
        without the responses, and nothing is sent again. Each is in the audit log.
      </AskButton>
      <AskButton
        to={decideWriteGroup}
        input={{ body: { ...body, happened: false } }}
        changes={DECIDED}
        label="They did not happen"
        of={name}
        title={`${writes === 1 ? "Send it" : `Send all ${writes}`} again?`}
        action="Send again"
        done={(decided) => describeDecided(decided, false)}
      >
        Send {all} of <b>{name}</b> again, in {runs === 1 ? "one run" : `${runs} runs`}. If one of them did
        happen, the target then has it twice. Each is in the audit log.
      </AskButton>
    </Group>
  );
}

function describeDecided({ writes, runs, left }: DecidedWrites, happened: boolean): string {
  const what = `${count(writes, "write")} of ${count(runs, "run")}`;
  const decided = happened
    ? `${what} ${writes === 1 ? "counts" : "count"} as done.`
    : `${what} ${writes === 1 ? "is" : "are"} sent again.`;
  if (left === 0) return decided;
  return `${decided} ${count(left, "write")} could not be decided and ${left === 1 ? "is" : "are"} still listed: the run is active at this moment, or the log says why.`;
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
