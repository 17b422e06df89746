import { Anchor, Stack, Tabs, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { withoutLockRemedy } from "#domain/labels/states.ts";
import { Link } from "wouter";
import { readNodeSample, readRunInput } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Run, RunStep } from "../parts/answers.ts";
import { problemsOf, textOf } from "../parts/answers.ts";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import { Reading } from "../parts/reading.tsx";
import { formatDuration, Time } from "../parts/time.tsx";
import { PageEvidence } from "./page-evidence.tsx";
import { NodeMark } from "./node-mark.tsx";
import styles from "./run-node-panel.module.css";
import type { RunNode } from "./run-node.ts";

/** The number of records shown. */
const SAMPLE = 5;

interface PanelProps {
  readonly run: Run;
  readonly node: RunNode;
  /** All nodes of the run. */
  readonly nodes: readonly RunNode[];
}

/** Everything that is known of one node of a run. */
export function RunNodePanel({ run, node, nodes }: PanelProps) {
  const { step } = node;
  const error = step?.error ?? null;
  // The note above the steps has the error that ended the run.
  const isSaid = error !== null && run.failure_detail?.includes(error) === true;
  return (
    <Stack
      gap="md"
      className={styles["detail"] ?? ""}
      component="section"
      aria-label={`Details of ${node.name}`}
    >
      <div>
        <Title order={3}>{node.name}</Title>
        <NodeMark node={node} />
      </div>
      {error !== null && !isSaid && (
        <Note tone="bad" title="Error">
          {withoutLockRemedy(error)}
        </Note>
      )}
      {step?.records_total === 0 && (step.records_usual ?? 0) > 0 && (
        <Note tone="waiting" title="Unexpectedly no records">
          Earlier runs had {step.records_usual}. The target may have changed.
        </Note>
      )}
      <NodeFacts run={run} node={node} />
      <PanelTabs run={run} node={node} nodes={nodes} />
    </Stack>
  );
}

function PanelTabs({ run, node, nodes }: PanelProps) {
  const { step } = node;
  return (
    <Tabs defaultValue={firstTab(node)} keepMounted={false}>
      <Tabs.List>
        <Tabs.Tab value="sample">Sample</Tabs.Tab>
        <Tabs.Tab value="errors">Errors</Tabs.Tab>
        <Tabs.Tab value="log">Log</Tabs.Tab>
        <Tabs.Tab value="input">Input</Tabs.Tab>
        <Tabs.Tab value="request">Request</Tabs.Tab>
        {hasEvidence(node) && <Tabs.Tab value="page">Page</Tabs.Tab>}
      </Tabs.List>
      <Tabs.Panel value="sample" pt="sm">
        <Sample run={run} node={node} />
      </Tabs.Panel>
      <Tabs.Panel value="errors" pt="sm">
        <Sample run={run} node={node} isInvalid />
      </Tabs.Panel>
      <Tabs.Panel value="log" pt="sm">
        <StepLog of={node} />
      </Tabs.Panel>
      <Tabs.Panel value="input" pt="sm">
        <NodeInput run={run} node={node} nodes={nodes} />
      </Tabs.Panel>
      <Tabs.Panel value="request" pt="sm">
        {step?.answer ? (
          <Answer of={step.answer} />
        ) : (
          <None>
            {step
              ? "No request of this step failed. Its log names its requests."
              : "This node sends no requests."}
          </None>
        )}
      </Tabs.Panel>
      {step && hasEvidence(node) && (
        <Tabs.Panel value="page" pt="sm">
          <PageEvidence run={run} step={step} />
        </Tabs.Panel>
      )}
    </Tabs>
  );
}

const hasEvidence = ({ step }: RunNode): boolean => (step?.evidence.length ?? 0) > 0;

/** The tab that most likely says why the node is looked at. */
function firstTab(node: RunNode): string {
  const { type, state, step, errors } = node;
  if (hasEvidence(node)) return "page";
  if (step?.answer) return "request";
  if (type === "input" || (state === "failed" && !step)) return "input";
  if (type === "output" || type === "review") return (errors ?? 0) > 0 ? "errors" : "sample";
  return step ? "log" : "sample";
}

const None = ({ children }: { readonly children: ReactNode }) => (
  <Text size="sm" c="dimmed">
    {children}
  </Text>
);

function NodeFacts({ run, node }: { readonly run: Run; readonly node: RunNode }) {
  const { step, fromMs, toMs } = node;
  const review = run.reviews.findLast((each) => each.node === node.id);
  return (
    <Facts
      of={[
        ["Node", node.name === node.id ? null : node.id],
        ["Type", node.type],
        ["Started", fromMs === null ? null : <Time key="from" at={new Date(fromMs).toISOString()} isExact />],
        ["Duration", fromMs === null || toMs === null ? null : formatDuration(Math.max(toMs - fromMs, 0))],
        ["Attempts", step && step.attempts > 1 ? step.attempts : null],
        ["Output", step?.output ?? null],
        ["Records in", node.recordsIn],
        ["Records", node.records],
        ["Usually", step?.records_usual ?? null],
        ["With errors", node.errors === 0 ? null : node.errors],
        ["Iterations", step ? turnsOf(step) : null],
        [
          "Review",
          review ? (
            <Anchor key="review" component={Link} href={`/reviews/${review.id}`} size="sm">
              Open the review
            </Anchor>
          ) : null,
        ],
      ]}
    />
  );
}

/** The first records of a node, or the first with errors. */
function Sample(props: { readonly run: Run; readonly node: RunNode; readonly isInvalid?: boolean }) {
  const { run, node, isInvalid = false } = props;
  const { may } = useSignedIn();
  const mayRead = may("run.results") && run.blueprint !== null;
  const sample = useRead(
    readNodeSample,
    { params: { runId: run.id, node: node.id }, query: { limit: SAMPLE, invalid: isInvalid } },
    { enabled: mayRead },
  );
  if (!may("run.results")) return <None>Your role can see the counts but not the records.</None>;
  if (!mayRead) return <None>A login has no records.</None>;
  return (
    <Reading of={sample}>
      {({ is_stored: isStored, items }) => {
        if (!isStored) return <None>{explainNotStored(node)}</None>;
        if (items.length === 0)
          return <None>{isInvalid ? "No record has errors." : "It has no records."}</None>;
        return (
          <ol className={styles["records"]}>
            {items.map(({ ordinal, data, errors }) => (
              <li key={ordinal}>
                <Text size="xs" c="dimmed">
                  Record {ordinal + 1}
                </Text>
                {problemsOf(errors).map(({ field, message }) => (
                  <Text key={`${field} ${message}`} size="xs" className={styles["wrong"] ?? ""}>
                    {field === null ? message : `${field}: ${message}`}
                  </Text>
                ))}
                <pre className={styles["answer"]} tabIndex={0} aria-label={`Record ${ordinal + 1}`}>
                  {JSON.stringify(data, null, 1)}
                </pre>
              </li>
            ))}
          </ol>
        );
      }}
    </Reading>
  );
}

function explainNotStored({ type, state }: RunNode): string {
  if (type === "input") return "An input's content is under Input.";
  if (state === "skipped") return "It was skipped, so it has no output.";
  return "Only its counts are recorded. Records are stored by nodes that send requests, by reviews and by outputs.";
}

/** What a node reads: the trigger's input, or the output of its sources. */
function NodeInput({ run, node, nodes }: PanelProps) {
  if (node.type === "input") return <InputText run={run} node={node} />;
  const sources = nodes.filter(({ id }) => node.sources.includes(id));
  if (sources.length === 0) return <None>It reads no other node.</None>;
  return (
    <Stack gap="sm">
      {sources.map((source) => (
        <div key={source.id}>
          <Text size="sm" fw={600}>
            {source.name}
          </Text>
          {source.type === "input" ? (
            <InputText run={run} node={source} />
          ) : (
            <Sample run={run} node={source} />
          )}
        </div>
      ))}
    </Stack>
  );
}

function InputText({ run, node }: { readonly run: Run; readonly node: RunNode }) {
  const { may } = useSignedIn();
  const given = run.inputs.find(({ ref_key: key }) => key === node.refKey);
  const input = useRead(
    readRunInput,
    { params: { runId: run.id, refKey: given?.ref_key ?? "" } },
    { enabled: given !== undefined && may("run.results") },
  );
  if (given === undefined)
    return <None>{run.purged_at === null ? "The trigger had no such input." : "Purged."}</None>;
  if (!may("run.results")) return <None>Your role can see the size of inputs but not their content.</None>;
  return (
    <Reading of={input}>
      {({ text, filename, content_type: type, is_cut: isCut }) => (
        <>
          {filename !== null && <Text size="sm">{[filename, type].filter(Boolean).join(", ")}</Text>}
          {text === null ? (
            <None>It is not text.</None>
          ) : (
            <pre className={styles["answer"]} tabIndex={0} aria-label={`Content of ${given.ref_key}`}>
              {text}
            </pre>
          )}
          {isCut && <None>Only its beginning is shown.</None>}
        </>
      )}
    </Reading>
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
        <pre className={styles["answer"]} tabIndex={0} aria-label="Beginning of the response">
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

function StepLog({ of: { id, step } }: { readonly of: RunNode }) {
  if (!step || step.log.length === 0)
    return <None>{step ? "This step logged nothing." : "Only nodes that send requests have a log."}</None>;
  return (
    <ol className={styles["log"]} aria-label={`Log of ${id}`}>
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
