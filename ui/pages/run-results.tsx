import { Anchor, Group, SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";
import { downloadResult } from "../api/operations.ts";
import { addressOf } from "../api/request.ts";
import type { Run } from "../parts/answers.ts";
import { Section } from "../parts/section.tsx";
import { RecordTable } from "./record-table.tsx";

const FORMATS = { csv: "CSV", xlsx: "Excel", ndjson: "NDJSON" } as const;

/** The run's results, one key at a time. */
export function RunResults({ run }: { readonly run: Run }) {
  const [chosen, setChosen] = useState(run.results[0]?.key ?? "");
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
      <RecordTable key={result.key} runId={run.id} resultKey={result.key} total={result.total_records} />
    </Section>
  );
}
