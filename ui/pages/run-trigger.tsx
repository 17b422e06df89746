import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Run } from "../parts/answers.ts";
import { Section } from "../parts/section.tsx";

/** The inputs that the trigger brought; its metadata is at the page's head. Without any, it takes no place. */
export function TriggerContent({ run }: { readonly run: Run }) {
  if (run.inputs.length === 0) return null;
  return (
    <Section title="Inputs">
      <Rows
        heads={["Input", "Kind", "Size"]}
        rows={run.inputs.map((input) => [
          <span key="name">
            {input.ref_key}
            {input.filename !== null && (
              <Text size="xs" c="dimmed" component="span" display="block">
                {input.filename}
              </Text>
            )}
          </span>,
          input.kind,
          formatBytes(input.size_bytes),
        ])}
      />
    </Section>
  );
}

function Rows({
  heads,
  rows,
}: {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly ReactNode[])[];
}) {
  return (
    <Table verticalSpacing="xs" className="any-break">
      <Table.Thead>
        <Table.Tr>
          {heads.map((head) => (
            <Table.Th key={head}>{head}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((cells, row) => (
          <Table.Tr key={row}>
            {cells.map((cell, column) => (
              <Table.Td key={heads[column]}>{cell}</Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
