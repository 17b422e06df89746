import { Paper, SegmentedControl, Skeleton, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Run, RunStep } from "../parts/answers.ts";
import { Section } from "../parts/section.tsx";
import { Elapsed } from "../parts/time.tsx";
import { StepMark } from "./step-mark.tsx";
import { RunStepDetail } from "./run-step-detail.tsx";
import styles from "./run-steps.module.css";

const RunGraph = lazy(async () => ({ default: (await import("./run-graph.tsx")).RunGraph }));

/** What was done, as lines of time or as the graph that the Blueprint is; one step opened. */
export function RunSteps({ run }: { readonly run: Run }) {
  const failed = run.steps.find(({ status }) => status === "failed")?.node ?? null;
  // Until somebody opens or closes one, it is the one that failed: also when it fails while somebody looks on.
  const [chosen, setOpened] = useState<string | null | undefined>(undefined);
  const opened = chosen === undefined ? failed : chosen;
  const [view, setView] = useState("timeline");
  const step = run.steps.find(({ node }) => node === opened);
  return (
    <Section
      title="Steps"
      isBare
      actions={
        // A test login has no graph.
        run.blueprint === null ? undefined : (
          <SegmentedControl
            aria-label="How steps are shown"
            value={view}
            onChange={setView}
            data={[
              { value: "timeline", label: "Timeline" },
              { value: "graph", label: "Graph" },
            ]}
          />
        )
      }
    >
      {view === "graph" ? (
        <Suspense fallback={<Skeleton height={320} />}>
          <RunGraph run={run} opened={opened} onOpen={setOpened} />
          {step && (
            <Paper withBorder radius="lg" mt="sm" pt="md">
              <RunStepDetail step={step} />
            </Paper>
          )}
        </Suspense>
      ) : (
        <Timeline run={run} opened={opened} onOpen={setOpened} />
      )}
    </Section>
  );
}

function explainNoSteps(run: Run): string {
  if (run.purged_at !== null) return "The steps' data was purged.";
  if (run.started_at === null) return "No step has started yet.";
  return "No step has made a request yet, and only those are recorded. The graph shows all steps.";
}

function Timeline(props: {
  readonly run: Run;
  readonly opened: string | null;
  readonly onOpen: (node: string | null) => void;
}) {
  const { run, opened } = props;
  if (run.steps.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {explainNoSteps(run)}
      </Text>
    );
  return (
    <ol className={styles["steps"]}>
      {run.steps.map((step) => {
        const isOpen = opened === step.node;
        return (
          <li key={step.node}>
            <button
              type="button"
              className={styles["step"]}
              aria-expanded={isOpen}
              onClick={() => props.onOpen(isOpen ? null : step.node)}
            >
              <span className={styles["name"]}>{step.node}</span>
              <StepMark step={step} />
              <StepBar run={run} step={step} />
              <span className={styles["took"]}>
                <Elapsed from={step.started_at} to={step.ended_at} />
              </span>
            </button>
            {isOpen && <RunStepDetail step={step} />}
          </li>
        );
      })}
    </ol>
  );
}

/** When it was, within the whole run. */
function StepBar({ run, step }: { readonly run: Run; readonly step: RunStep }) {
  const begin = Date.parse(run.started_at ?? run.created_at);
  const latest = Math.max(...run.steps.map((each) => Date.parse(each.ended_at ?? each.started_at)));
  const end = Math.max(run.ended_at === null ? latest : Date.parse(run.ended_at), begin + 1);
  const at = (time: string): number => ((Date.parse(time) - begin) / (end - begin)) * 100;
  const from = Math.min(Math.max(at(step.started_at), 0), 99.5);
  const to = step.ended_at === null ? 100 : Math.min(at(step.ended_at), 100);
  return (
    <svg
      className={styles["bar"]}
      data-status={step.status}
      preserveAspectRatio="none"
      viewBox="0 0 100 8"
      aria-hidden="true"
    >
      <rect className={styles["track"]} x="0" y="3.5" width="100" height="1" />
      <rect x={from} y="0" width={Math.max(to - from, 0.5)} height="8" rx="0.4" />
    </svg>
  );
}
