import { Paper, Table } from "@mantine/core";
import type { ReactNode } from "react";

export interface Column<Row> {
  readonly title: string;
  /** The minimum width at which it is shown; undefined: always. */
  readonly from?: "xs" | "sm" | "md";
  readonly cell: (row: Row) => ReactNode;
}

/** Rows with the same columns. The first column identifies the row. */
export function DataTable<Row>(props: {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
}) {
  const { columns } = props;
  return (
    <Paper withBorder radius="lg" className="table-card">
      <Table highlightOnHover verticalSpacing="sm" horizontalSpacing="md" aria-label={props.name}>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ title, from }) => (
              <Table.Th key={title} {...(from && { visibleFrom: from })}>
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {props.rows.map((row) => (
            <Table.Tr key={props.keyOf(row)}>
              {columns.map(({ title, from, cell }) => (
                <Table.Td key={title} className="any-break" {...(from && { visibleFrom: from })}>
                  {cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}
