import { Paper, Table } from "@mantine/core";
import type { ReactNode } from "react";
import styles from "./data-table.module.css";

export interface Column<Row> {
  readonly title: string;
  /** The minimum width at which a table has room for it; undefined: always. On a phone a row is a card, and has all of them. */
  readonly from?: "xs" | "sm" | "md";
  /** Whether its cells are numbers, to be compared by their ends. */
  readonly isFigure?: boolean;
  readonly cell: (row: Row) => ReactNode;
}

/** Said, because without the display of a table a browser may lose it. */
const AS = {
  table: { role: "table" },
  rowgroup: { role: "rowgroup" },
  row: { role: "row" },
  columnheader: { role: "columnheader" },
  cell: { role: "cell" },
} as const;

/** Rows with the same columns. The first column identifies the row. */
export function DataTable<Row>(props: {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
  /** Whether its cells are short numbers, to be compared: then it is a table on a phone as well, of the columns that have room. */
  readonly isNumeric?: boolean;
  /** Whether its rows are lines of a log. */
  readonly isDense?: boolean;
}) {
  const { columns } = props;
  return (
    <Paper withBorder radius="lg" className="table-card">
      <Table
        {...AS.table}
        className={styles[props.isNumeric === true ? "numbers" : "rows"] ?? ""}
        highlightOnHover
        verticalSpacing={props.isDense === true ? 6 : "sm"}
        horizontalSpacing={props.isDense === true ? "sm" : "md"}
        aria-label={props.name}
      >
        <Table.Thead {...AS.rowgroup}>
          <Table.Tr {...AS.row}>
            {columns.map(({ title, from, isFigure }) => (
              <Table.Th
                key={title}
                {...AS.columnheader}
                data-from={from}
                className={isFigure === true ? "figure" : ""}
              >
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody {...AS.rowgroup}>
          {props.rows.map((row) => (
            <Table.Tr key={props.keyOf(row)} {...AS.row}>
              {columns.map(({ title, from, isFigure, cell }) => (
                <Table.Td
                  key={title}
                  {...AS.cell}
                  className={isFigure === true ? "figure" : "any-break"}
                  data-title={title}
                  data-from={from}
                >
                  <div>{cell(row)}</div>
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}
