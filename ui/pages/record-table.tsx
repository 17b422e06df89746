import { Button, Code, Group, Modal, Text } from "@mantine/core";
import { useState } from "react";
import { listResultRecords } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { fieldsOf, problemsOf, textOf, type ResultRecord } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { useColumns, usePagedRecords } from "../parts/paged-records.ts";
import { RowGap } from "../parts/row-gap.tsx";
import { useVisibleRows } from "../parts/visible-rows.ts";
import styles from "./record-table.module.css";

const ROW_PX = 37;
/** So few records are shown whole; more scroll in a box of their own. */
const WHOLE_MAX = 100;
/** Digits after the point that all numbers of a column are given; a longer number stays as it is. */
const DIGITS_MAX = 4;
/** The number of columns shown at a time: a table with hundreds would be slow. */
const COLUMNS_MAX = 50;
/** Browsers limit the height of an element to some 33 million pixels. */
const ROWS_MAX = 800_000;

/** A table of any number of records: only visible rows are rendered, and only visible pages are requested. */
export function RecordTable(props: {
  readonly runId: string;
  readonly resultKey: string;
  readonly total: number;
  /** Whether only those with errors are shown; `total` then counts these. */
  readonly isInvalid?: boolean;
}) {
  const [opened, setOpened] = useState<number | null>(null);
  const [from, setFrom] = useState(0);
  const count = Math.min(props.total, ROWS_MAX);
  const { box, visible, firstIndex, lastIndex, above, below } = useVisibleRows(count, ROW_PX);
  const { recordAt, all, failure } = useRecords(props, firstIndex, lastIndex);
  const columns = all.slice(from, from + COLUMNS_MAX);
  const numbers = useNumberColumns(visible.map(({ index }) => recordAt(index)));
  if (props.total === 0)
    return (
      <Text size="sm" c="dimmed">
        There are no records under this key.
      </Text>
    );
  return (
    <>
      {failure && <FailureNote error={failure} />}
      {count < props.total && (
        <Text size="sm" c="dimmed">
          These are the first {ROWS_MAX.toLocaleString("en")} of {props.total.toLocaleString("en")} records. A
          download has all of them.
        </Text>
      )}
      {all.length > COLUMNS_MAX && <ColumnPager total={all.length} from={from} onFrom={setFrom} />}
      {/* Can also be scrolled by keyboard. */}
      <section
        {...box}
        className={styles["box"]}
        data-whole={count <= WHOLE_MAX}
        aria-label="Records"
        tabIndex={0}
      >
        <table className={styles["table"]} aria-rowcount={props.total + 1} aria-colcount={all.length + 2}>
          <Heads columns={columns} numbers={numbers} />
          <tbody>
            <RowGap columns={columns.length + 2} px={above} />
            {visible.map(({ index }) => (
              <RecordRow
                key={index}
                at={index}
                columns={columns}
                digits={numbers}
                record={recordAt(index)}
                onOpen={() => setOpened(index)}
              />
            ))}
            <RowGap columns={columns.length + 2} px={below} />
          </tbody>
        </table>
      </section>
      <WholeRecord
        at={opened}
        record={opened === null ? undefined : recordAt(opened)}
        onClose={() => setOpened(null)}
      />
    </>
  );
}

/** Columns whose first value that was seen is a number, with the digits after its point. They stay so, whatever one scrolls to. */
function useNumberColumns(records: readonly (ResultRecord | undefined)[]): ReadonlyMap<string, number> {
  const [seen] = useState(() => new Map<string, number | null>());
  for (const record of records)
    for (const [name, value] of Object.entries(record ? fieldsOf(record.data) : {})) {
      if (value === null) continue;
      const before = seen.get(name);
      if (typeof value !== "number") seen.set(name, before ?? null);
      else if (before !== null) seen.set(name, Math.max(before ?? 0, digitsOf(value)));
    }
  return new Map([...seen].flatMap(([name, digits]) => (digits === null ? [] : [[name, digits] as const])));
}

/** The digits after the point; 0 for a number that is written otherwise, or is too long. */
function digitsOf(value: number): number {
  const digits = /^-?\d+\.(\d+)$/.exec(String(value))?.[1]?.length ?? 0;
  return digits > DIGITS_MAX ? 0 : digits;
}

/** As many digits as the others of its column, so that points are below each other. */
function cellText(value: unknown, digits: number | undefined): string {
  const text = textOf(value);
  if (typeof value !== "number" || digits === undefined || !/^-?\d+(?:\.\d+)?$/.test(text)) return text;
  const padded = value.toFixed(digits);
  return padded.length < text.length ? text : padded;
}

const Heads = (props: {
  readonly columns: readonly string[];
  readonly numbers: ReadonlyMap<string, number>;
}) => (
  <thead>
    <tr aria-rowindex={1}>
      <th scope="col">#</th>
      {props.columns.map((name) => (
        <th key={name} scope="col" title={name} data-number={props.numbers.has(name)}>
          {name}
        </th>
      ))}
      <th scope="col">Errors</th>
    </tr>
  </thead>
);

function ColumnPager(props: {
  readonly total: number;
  readonly from: number;
  readonly onFrom: (from: number) => void;
}) {
  const { total, from } = props;
  const to = Math.min(from + COLUMNS_MAX, total);
  return (
    <Group component="nav" aria-label="Columns" gap="sm" mb="xs">
      <Text size="sm" component="output">
        Columns {from + 1}–{to} of {total}
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        disabled={from === 0}
        onClick={() => props.onFrom(from - COLUMNS_MAX)}
      >
        Previous columns
      </Button>
      <Button
        size="compact-sm"
        variant="default"
        disabled={to === total}
        onClick={() => props.onFrom(from + COLUMNS_MAX)}
      >
        Next columns
      </Button>
    </Group>
  );
}

/** Every key of one record, including text that a cell truncates. */
function WholeRecord(props: {
  readonly at: number | null;
  readonly record: ResultRecord | undefined;
  readonly onClose: () => void;
}) {
  const { record } = props;
  return (
    <Modal
      opened={record !== undefined}
      onClose={props.onClose}
      title={`Record ${(record?.ordinal ?? props.at ?? 0) + 1}`}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {problemsOf(record?.errors ?? []).map(({ field, message }) => (
        <Text key={`${field ?? ""} ${message}`} size="sm" className={styles["problem"]}>
          {field === null ? message : `${field}: ${message}`}
        </Text>
      ))}
      <Code block tabIndex={0} className="wrapped any-break">
        {JSON.stringify(record?.data, null, 2)}
      </Code>
    </Modal>
  );
}

function RecordRow(props: {
  readonly at: number;
  readonly columns: readonly string[];
  readonly digits: ReadonlyMap<string, number>;
  readonly record: ResultRecord | undefined;
  readonly onOpen: () => void;
}) {
  const { record } = props;
  const place = (record?.ordinal ?? props.at) + 1;
  const fields = record ? fieldsOf(record.data) : {};
  const problems = record ? problemsOf(record.errors) : [];
  return (
    <tr aria-rowindex={props.at + 2} data-invalid={record?.is_valid === false}>
      <th scope="row">
        <button
          type="button"
          className={styles["open"]}
          aria-label={`Show record ${place}`}
          disabled={!record}
          onClick={props.onOpen}
        >
          {place}
        </button>
      </th>
      {props.columns.map((name) => (
        <td
          key={name}
          data-number={typeof fields[name] === "number"}
          data-invalid={problems.some(({ field }) => field === name)}
          title={textOf(fields[name])}
        >
          {record ? cellText(fields[name], props.digits.get(name)) : "…"}
        </td>
      ))}
      <td>
        {problems.map(({ field, message }) => (field === null ? message : `${field}: ${message}`)).join("; ")}
      </td>
    </tr>
  );
}

function useRecords(
  {
    runId,
    resultKey,
    isInvalid,
  }: { readonly runId: string; readonly resultKey: string; readonly isInvalid?: boolean },
  first: number,
  last: number,
) {
  const { recordAt, loaded, failure } = usePagedRecords<ResultRecord>(
    (query) => {
      const input = {
        params: { runId, resultKey },
        query: isInvalid === true ? { ...query, invalid: true } : query,
      };
      return {
        queryKey: keyOf(listResultRecords, input),
        queryFn: async ({ signal }) => await call(listResultRecords, input, signal),
      };
    },
    first,
    last,
  );
  const all = useColumns(loaded.flatMap(({ data }) => Object.keys(fieldsOf(data))));
  return { recordAt, all, failure };
}
