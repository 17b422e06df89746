import { Anchor, Group, SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";
import { downloadResult, listResultRecords } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { addressOf } from "../api/request.ts";
import type { Run } from "../parts/answers.ts";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { RecordTable } from "./record-table.tsx";
import { RESULTS, useOnlyWrong } from "./wrong-records-note.tsx";

const records = new Intl.NumberFormat("en");

/** Only the records with errors, of which the service knows the number when it has counted them. */
function WrongRecords({ runId, resultKey }: { readonly runId: string; readonly resultKey: string }) {
  const counted = useRead(listResultRecords, {
    params: { runId, resultKey },
    query: { invalid: true, limit: 1 },
  });
  return (
    <Reading of={counted}>
      {({ invalid_records: total }) => (
        <RecordTable runId={runId} resultKey={resultKey} total={total ?? 0} isInvalid />
      )}
    </Reading>
  );
}

const FORMATS = { csv: "CSV", xlsx: "Excel", ndjson: "NDJSON" } as const;

/** The run's results, one key at a time. */
export function RunResults({ run, wrong }: { readonly run: Run; readonly wrong: number }) {
  const [chosen, setChosen] = useState(run.results[0]?.key ?? "");
  const { onlyWrong: isFiltered, setOnlyWrong: setIsFiltered } = useOnlyWrong();
  const result = run.results.find(({ key }) => key === chosen) ?? run.results[0];
  if (!result) return null;
  return (
    <Section
      title="Results"
      isBare
      actions={
        <Group gap="md">
          <Text size="sm" c="dimmed">
            Download
          </Text>
          {Object.entries(FORMATS).map(([format, name]) => (
            <Anchor
              key={format}
              size="sm"
              download
              href={addressOf(downloadResult, {
                params: { runId: run.id, resultKey: result.key },
                query: { format: format as keyof typeof FORMATS },
              })}
            >
              {name}
            </Anchor>
          ))}
        </Group>
      }
    >
      {run.results.length > 1 && (
        <SegmentedControl
          mb="sm"
          aria-label="Result"
          value={result.key}
          onChange={setChosen}
          data={run.results.map(({ key, total_records: total }) => ({
            value: key,
            label: `${key} (${total})`,
          }))}
        />
      )}
      <Group id={RESULTS} justify="space-between" mb="sm">
        <Text size="sm" c="dimmed">
          {records.format(result.total_records)} {result.total_records === 1 ? "record" : "records"}
          {wrong > 0 && `, ${records.format(wrong)} with errors`}
        </Text>
        {wrong > 0 && (
          <SegmentedControl
            size="xs"
            aria-label="Which records"
            value={isFiltered ? "wrong" : "all"}
            onChange={(which) => setIsFiltered(which === "wrong")}
            data={[
              { value: "all", label: "All" },
              { value: "wrong", label: "With errors" },
            ]}
          />
        )}
      </Group>
      {wrong > 0 && isFiltered ? (
        <WrongRecords key={`${result.key} wrong`} runId={run.id} resultKey={result.key} />
      ) : (
        <RecordTable key={result.key} runId={run.id} resultKey={result.key} total={result.total_records} />
      )}
    </Section>
  );
}
