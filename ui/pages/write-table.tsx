import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "wouter";
import { decideWrite, listWriteGroups, listWrites, readOverview, readRun } from "../api/operations.ts";
import { keyOf, useRead, useSignedIn } from "../api/queries.ts";
import type { UncertainWrite, WriteGroup } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";

/** The data that a decision changes. */
export const DECIDED = [keyOf(listWriteGroups), keyOf(listWrites), keyOf(readRun), keyOf(readOverview)];

/** The writes of a group, each with its own decision. */
export function SingleWrites({
  of: { account, blueprint, node },
}: {
  readonly of: Pick<WriteGroup, "account" | "blueprint" | "node">;
}) {
  const { may } = useSignedIn();
  const writes = useRead(listWrites, { query: { account, blueprint, node } }, { live: true });
  return (
    <Reading of={writes}>
      {({ items }) => (
        <DataTable
          name={`Writes of ${blueprint}, node ${node}`}
          rows={items}
          keyOf={(write) => `${write.run_id} ${write.record}`}
          columns={[
            {
              title: "Run",
              cell: (write) => (
                <>
                  <Anchor component={Link} href={`/runs/${write.run_id}`} size="sm" className="any-break">
                    {write.run_id}
                  </Anchor>
                  <Text size="xs" c="dimmed">
                    record {write.record}
                    {write.run_ended !== null && `, the run is ${write.run_ended}`}
                  </Text>
                </>
              ),
            },
            { title: "Sent", from: "sm", cell: (write) => <Time at={write.started_at} /> },
            { title: "Reason", from: "md", cell: (write) => write.detail },
            ...(may("write.decide")
              ? [{ title: "Actions", cell: (write: UncertainWrite) => <Decision of={write} /> }]
              : []),
          ]}
        />
      )}
    </Reading>
  );
}

function Decision({ of: write }: { readonly of: UncertainWrite }) {
  const params = { runId: write.run_id, node: write.node, record: String(write.record) };
  const name = `record ${write.record} of ${write.run_id}`;
  return (
    <Group gap="xs">
      <AskButton
        to={decideWrite}
        input={{ params, body: { happened: true } }}
        changes={DECIDED}
        label="Happened"
        of={name}
        title="Did it happen?"
        action="It happened"
        done="The write counts as done."
      >
        It is not sent again, and its run continues without the response.
      </AskButton>
      <AskButton
        to={decideWrite}
        input={{ params, body: { happened: false } }}
        changes={DECIDED}
        label="Did not happen"
        of={name}
        title="Send it again?"
        action="Send again"
        done="The write is sent again."
      >
        If it did happen after all, the target then has it twice.
      </AskButton>
    </Group>
  );
}
