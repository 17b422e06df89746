import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "wouter";
import { compareRun } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";

/** The records of each step beside those of the last completed run of the Blueprint; what differs is bold. */
export function RunComparison({ run }: { readonly run: Run }) {
  const comparison = useRead(compareRun, { params: { runId: run.id } });
  return (
    <Reading of={comparison}>
      {({ with: good, nodes }) => {
        if (good === null)
          return (
            <Text size="sm" mt="sm">
              No earlier run of this Blueprint has completed.
            </Text>
          );
        return (
          <>
            <Text size="sm" mt="sm">
              The last good run,{" "}
              <Anchor component={Link} href={`/runs/${good.id}`} size="sm" underline="always">
                {good.name ?? good.id}
              </Anchor>
              , was triggered <Time at={good.created_at} />
              {good.blueprint_version === run.blueprint_version
                ? "."
                : ` with version ${good.blueprint_version}; this run used version ${run.blueprint_version}.`}
            </Text>
            <Table verticalSpacing={4} mt="xs" aria-label="Records by step">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Step</Table.Th>
                  <Table.Th>This run</Table.Th>
                  <Table.Th>Last good run</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {nodes.map((each) => {
                  const isOther = each.records !== each.records_before || each.errors !== each.errors_before;
                  return (
                    <Table.Tr key={each.node} {...(isOther ? { fw: 600 } : {})}>
                      <Table.Td className="any-break">{each.node}</Table.Td>
                      <Table.Td>{countText(each.records, each.errors)}</Table.Td>
                      <Table.Td>{countText(each.records_before, each.errors_before)}</Table.Td>
                    </Table.Tr>
                  );
                })}
              </Table.Tbody>
            </Table>
          </>
        );
      }}
    </Reading>
  );
}

function countText(records: number | null, errors: number | null): string {
  if (records === null) return "–";
  const text = records.toLocaleString("en");
  return (errors ?? 0) === 0 ? text : `${text}, ${errors} with errors`;
}
