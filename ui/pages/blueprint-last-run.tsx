import { Button, Group, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { listRuns, readRun, readRunInput } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { runTitle } from "../parts/run-title.ts";
import { Time } from "../parts/time.tsx";

type Values = Readonly<Record<string, string>>;

/** What a run was triggered with, as far as a form can take it. */
export interface Triggered {
  readonly metadata: Values;
  readonly inputs: Values;
  readonly credentials: Values;
  /** Inputs that are no text, or too long. */
  readonly omitted: readonly string[];
}

/** JSON on lines of its own, if that is all that changes: a number with many digits must stay as it is. */
function indented(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text.trim() ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

async function readTriggered(runId: string): Promise<Triggered> {
  const run = await call(readRun, { params: { runId } });
  const inputs: Record<string, string> = {};
  const omitted: string[] = [];
  for (const { ref_key: refKey } of run.inputs) {
    const { text, is_cut: isCut } = await call(readRunInput, { params: { runId, refKey } });
    if (text === null || isCut) omitted.push(refKey);
    else inputs[refKey] = indented(text);
  }
  const kept = run.credentials.filter((each) => !each.is_deleted);
  return {
    metadata: run.metadata,
    inputs,
    credentials: Object.fromEntries(kept.map(({ slot, credential_id: id }) => [slot, id])),
    omitted,
  };
}

/** Fills the form in with what the Blueprint's last run was triggered with. Nothing, if there is none with its data. */
export function LastRun(props: {
  readonly blueprint: { readonly account: string; readonly key: string };
  readonly onRead: (last: Triggered) => void;
}) {
  const { account, key } = props.blueprint;
  const { may } = useSignedIn();
  const enabled = may("run.results");
  const [search] = useSearchParams();
  /** The run whose input is to be corrected. */
  const from = search.get("from");
  const runs = useRead(
    listRuns,
    { query: from === null ? { account, blueprint: key, limit: 1 } : { id: from } },
    { enabled },
  );
  const [isReading, setIsReading] = useState(false);
  const [omitted, setOmitted] = useState<readonly string[]>([]);
  const [failure, setFailure] = useState<Error | null>(null);
  const last = runs.data?.items.find(({ purged_at: at }) => at === null);
  const fill = (run: string): void => {
    setIsReading(true);
    setFailure(null);
    readTriggered(run)
      .then((read) => {
        setOmitted(read.omitted);
        props.onRead(read);
      })
      .catch((error: unknown) => setFailure(error instanceof Error ? error : new Error(String(error))))
      .finally(() => setIsReading(false));
  };
  const isFilledFor = useRef<string | null>(null);
  useEffect(() => {
    if (from === null || last === undefined || isFilledFor.current === last.id) return;
    isFilledFor.current = last.id;
    fill(last.id);
  });
  if (last === undefined) return null;
  return (
    <>
      <Group gap="sm">
        <Button variant="default" size="xs" loading={isReading} onClick={() => fill(last.id)}>
          {from === null ? "Fill in from the last run" : "Fill in from the run again"}
        </Button>
        <Text size="sm" c="dimmed" className="any-break">
          {runTitle(last)}, <Time at={last.created_at} />
        </Text>
      </Group>
      {failure !== null && <FailureNote error={failure} />}
      {omitted.length > 0 && (
        <Text size="sm" component="output">
          Not filled in, because {omitted.length === 1 ? "it is" : "they are"} no text or longer than 64 kB:{" "}
          {omitted.join(", ")}.
        </Text>
      )}
    </>
  );
}
