import { Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { listResultRecords } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { fieldsOf, problemsOf, textOf, type ResultRecord } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import styles from "./record-table.module.css";

const PAGE = 200;
const ROW_PX = 37;
const COLUMNS_MAX = 50;
/** How long a page that is out of sight is kept. */
const KEPT_MS = 20_000;
/** Pages are asked for no more often: somebody who drags through all records skips most of them. */
const ASK_EVERY_MS = 150;
/** Browsers end an element at some 33 million pixels. */
const ROWS_MAX = 800_000;

/** Records as a table, however many: only the rows in sight exist, and only the pages in sight are asked for. */
export function RecordTable(props: {
  readonly runId: string;
  readonly resultKey: string;
  readonly total: number;
}) {
  const box = useRef<HTMLElement>(null);
  const count = Math.min(props.total, ROWS_MAX);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const seen = rows.getVirtualItems();
  const [first, last] = [seen[0], seen.at(-1)];
  const { recordAt, columns, failure } = useRecords(props, first?.index ?? 0, last?.index ?? 0);
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
      {/* Scrolled by keyboard, too. */}
      <section ref={box} className={styles["box"]} aria-label="Records" tabIndex={0}>
        <table className={styles["table"]} aria-rowcount={props.total + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">#</th>
              {columns.map((name) => (
                <th key={name} scope="col" title={name}>
                  {name}
                </th>
              ))}
              <th scope="col">Errors</th>
            </tr>
          </thead>
          <tbody>
            <Gap columns={columns.length + 2} px={first?.start ?? 0} />
            {seen.map(({ index }) => (
              <RecordRow key={index} at={index} columns={columns} record={recordAt(index)} />
            ))}
            <Gap columns={columns.length + 2} px={rows.getTotalSize() - (last?.end ?? 0)} />
          </tbody>
        </table>
      </section>
    </>
  );
}

/** The place of rows that are not in sight. */
const Gap = ({ px, columns }: { readonly px: number; readonly columns: number }) =>
  px > 0 ? (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: px, padding: 0 }} />
    </tr>
  ) : null;

function RecordRow(props: {
  readonly at: number;
  readonly columns: readonly string[];
  readonly record: ResultRecord | undefined;
}) {
  const { record } = props;
  const fields = record ? fieldsOf(record.data) : {};
  const problems = record ? problemsOf(record.errors) : [];
  return (
    <tr aria-rowindex={props.at + 2} data-invalid={record?.is_valid === false}>
      <th scope="row">{props.at + 1}</th>
      {props.columns.map((name) => (
        <td
          key={name}
          data-invalid={problems.some(({ field }) => field === name)}
          title={textOf(fields[name])}
        >
          {record ? textOf(fields[name]) : "…"}
        </td>
      ))}
      <td>
        {problems.map(({ field, message }) => (field === null ? message : `${field}: ${message}`)).join("; ")}
      </td>
    </tr>
  );
}

/** More are never in sight; while the two ends are told one after the other they may be far apart. */
const PAGES_MAX = 2;

/** The number as it was at most a moment ago. */
function usePaced(number: number): number {
  const [told, setTold] = useState(number);
  const toldAtMs = useRef(0);
  useEffect(() => {
    if (number === told) return;
    const tell = (): void => {
      toldAtMs.current = performance.now();
      setTold(number);
    };
    const timer = setTimeout(tell, Math.max(0, toldAtMs.current + ASK_EVERY_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [number, told]);
  return told;
}

/** The pages around what is in sight; the first one always, because the columns are its keys. */
function useRecords(of: { readonly runId: string; readonly resultKey: string }, first: number, last: number) {
  const from = usePaced(Math.floor(first / PAGE));
  const to = usePaced(Math.floor(last / PAGE));
  const wanted = new Set([0]);
  for (let page = from; page <= Math.min(to, from + PAGES_MAX); page++) wanted.add(page);
  const pages = [...wanted];
  const answers = useQueries({
    queries: pages.map((page) => {
      const input = {
        params: { runId: of.runId, resultKey: of.resultKey },
        query: { from: page * PAGE, limit: PAGE },
      };
      return {
        queryKey: keyOf(listResultRecords, input),
        // What a run gave never changes.
        staleTime: Infinity,
        // Scrolling through a hundred thousand records shall not keep them all.
        gcTime: KEPT_MS,
        queryFn: async ({ signal }: { signal: AbortSignal }) => await call(listResultRecords, input, signal),
      };
    }),
  });
  const byPage = new Map(pages.map((page, at) => [page, answers[at]?.data?.items]));
  const names = new Set((byPage.get(0) ?? []).flatMap(({ data }) => Object.keys(fieldsOf(data))));
  return {
    columns: [...names].slice(0, COLUMNS_MAX),
    recordAt: (index: number): ResultRecord | undefined =>
      byPage.get(Math.floor(index / PAGE))?.[index % PAGE],
    failure: answers.find(({ error }) => error)?.error,
  };
}
