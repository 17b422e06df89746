import { Button, List, Text } from "@mantine/core";
import { useSearchParams } from "wouter";
import { listResultRecords } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { problemsOf, type ResultRecord, type Run } from "../parts/answers.ts";
import { Note } from "../parts/note.tsx";

const records = new Intl.NumberFormat("en");
/** Where the table is on the page. */
export const RESULTS = "results";

/** All records of a result are read to find those with errors: of a larger one, reasons are not counted. */
const READ_MAX = 20_000;
const WRONG_MAX = 100;
const REASONS = 5;

/** Whether only the records with errors are shown, which is in the URL. */
export function useOnlyWrong() {
  const [search, setSearch] = useSearchParams();
  return {
    onlyWrong: search.get("records") === "wrong",
    setOnlyWrong: (isOnly: boolean): void =>
      setSearch(
        (before) => {
          const after = new URLSearchParams(before);
          after.delete("records");
          if (isOnly) after.set("records", "wrong");
          return after;
        },
        { replace: true },
      ),
  };
}

/** Says first that records of a completed run have errors, and why. */
export function WrongRecordsNote({ run, wrong }: { readonly run: Run; readonly wrong: number }) {
  const { setOnlyWrong } = useOnlyWrong();
  const [first, ...others] = run.results;
  if (!first) return null;
  const isOnly = others.length === 0;
  const isCounted = isOnly && wrong <= WRONG_MAX && first.total_records <= READ_MAX;
  const have = wrong === 1 ? "has" : "have";
  const title = isOnly
    ? `${records.format(wrong)} of ${records.format(first.total_records)} records ${have} errors`
    : `${records.format(wrong)} ${wrong === 1 ? "record" : "records"} ${have} errors`;
  return (
    <Note tone="waiting" title={title}>
      {isCounted && <Reasons runId={run.id} resultKey={first.key} />}
      <Text size="sm">
        The account&apos;s backend gets them marked as invalid. Correct them at the source, and run again.
      </Text>
      <Button
        size="xs"
        mt="xs"
        variant="default"
        onClick={() => {
          setOnlyWrong(true);
          document.querySelector(`#${RESULTS}`)?.scrollIntoView();
        }}
      >
        {wrong === 1 ? "Show it" : `Show the ${records.format(wrong)}`}
      </Button>
    </Note>
  );
}

function Reasons(params: { readonly runId: string; readonly resultKey: string }) {
  const { data } = useRead(listResultRecords, { params, query: { invalid: true, limit: WRONG_MAX } });
  if (data === undefined) return null;
  const reasons = countReasons(data.items);
  const rest = reasons.length - REASONS;
  return (
    <List size="sm" aria-label="Errors by reason" mb="xs">
      {reasons.slice(0, REASONS).map(([reason, count]) => (
        <List.Item key={reason} className="any-break">
          {records.format(count)} × {reason}
        </List.Item>
      ))}
      {rest > 0 && <List.Item>{rest === 1 ? "1 other reason" : `${rest} other reasons`}</List.Item>}
    </List>
  );
}

/** How many records have each error, the most frequent first. */
function countReasons(of: readonly ResultRecord[]): readonly (readonly [reason: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const { errors } of of)
    for (const reason of new Set(problemsOf(errors).map(({ message }) => message)))
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a);
}
