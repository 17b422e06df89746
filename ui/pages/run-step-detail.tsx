import { Stack, Text } from "@mantine/core";
import type { RunStep } from "../parts/answers.ts";
import { textOf } from "../parts/answers.ts";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import { Time } from "../parts/time.tsx";
import styles from "./run-step-detail.module.css";

export function RunStepDetail({ step }: { readonly step: RunStep }) {
  const error = step.error !== null && (
    <Note tone="bad" title="Error">
      {step.error}
    </Note>
  );
  if (step.attempts === 0)
    return (
      <Stack gap="md" className={styles["detail"] ?? ""}>
        {error}
        <Text size="sm" c="dimmed">
          A node without requests leaves no other record.
        </Text>
      </Stack>
    );
  return (
    <Stack gap="md" className={styles["detail"] ?? ""}>
      {error}
      {step.answer !== null && <Answer of={step.answer} />}
      {step.records_total === 0 && (step.records_usual ?? 0) > 0 && (
        <Note tone="waiting" title="Unexpectedly no records">
          Earlier runs had {step.records_usual}. The target may have changed.
        </Note>
      )}
      <Facts
        of={[
          ["Started", <Time key="began" at={step.started_at} isExact />],
          ["Attempts", step.attempts],
          ["Output", step.output],
          ["Records", step.records_total],
          ["Usually", step.records_usual],
          ["Iterations", turnsOf(step)],
          [
            "With errors",
            step.records_total === null ? null : step.records_total - (step.records_valid ?? 0),
          ],
        ]}
      />
      <StepLog step={step} />
    </Stack>
  );
}

/** The target's answer to the failed request. */
function Answer({ of }: { readonly of: NonNullable<RunStep["answer"]> }) {
  return (
    <Note tone="quiet" title="Response from the target">
      <Facts
        of={[
          ["Status", of.status],
          ["Address", of.address],
          ["Redirects to", of.leads_to],
          ["Type", of.content_type],
          ["Title", of.title],
        ]}
      />
      {of.begins !== "" && (
        <pre className={styles["answer"]} aria-label="Beginning of the response">
          {of.begins}
        </pre>
      )}
    </Note>
  );
}

/** The progress of a loop. */
function turnsOf({ turns_begun: begun, turns_total: total }: RunStep): string | null {
  if (begun === null && total === null) return null;
  return total === null ? String(begun) : `${begun ?? 0} of ${total}`;
}

function StepLog({ step }: { readonly step: RunStep }) {
  if (step.log.length === 0)
    return (
      <Text size="sm" c="dimmed">
        This step logged nothing.
      </Text>
    );
  return (
    <ol className={styles["log"]} aria-label={`Log of ${step.node}`}>
      {step.log.map((entry, line) => (
        <li key={line}>
          <LogLine entry={entry} />
        </li>
      ))}
    </ol>
  );
}

/** A log line: a message and its fields, or any other kind of line as JSON. */
function LogLine({ entry }: { readonly entry: unknown }) {
  const { message, ...fields } = (entry ?? {}) as { readonly message?: unknown };
  if (typeof message !== "string") return <>{JSON.stringify(entry)}</>;
  return (
    <>
      {message}
      {Object.entries(fields).map(([name, value]) => (
        <span key={name} className={styles["field"]}>
          {name}={textOf(value)}
        </span>
      ))}
    </>
  );
}
