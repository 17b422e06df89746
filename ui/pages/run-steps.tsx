import { Paper, SegmentedControl, Skeleton } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Run, RunStep } from "../parts/answers.ts";
import { Section } from "../parts/section.tsx";
import { RunStepDetail } from "./run-step-detail.tsx";
import { RunTimeline } from "./run-timeline-rows.tsx";

const RunGraph = lazy(async () => ({ default: (await import("./run-graph.tsx")).RunGraph }));

/** The run's steps, as a timeline or as the Blueprint's graph, with one step expanded. */
export function RunSteps({ run }: { readonly run: Run }) {
  const steps = withFailed(run);
  const failed = steps.find(({ status }) => status === "failed")?.node ?? null;
  // Until the operator expands or collapses a step, the failed one is expanded, even if it fails while the page is open.
  const [chosen, setOpened] = useState<string | null | undefined>(undefined);
  const opened = chosen === undefined ? failed : chosen;
  const [view, setView] = useState("timeline");
  const step = steps.find(({ node }) => node === opened);
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
          <RunGraph run={run} steps={steps} opened={opened} onOpen={setOpened} />
          {step && (
            <Paper withBorder radius="lg" mt="sm" pt="md">
              <RunStepDetail step={step} />
            </Paper>
          )}
        </Suspense>
      ) : (
        <RunTimeline run={run} steps={steps} opened={opened} onOpen={setOpened} />
      )}
    </Section>
  );
}

/** For a node without requests, only the run's failure in it is recorded. */
function withFailed(run: Run): readonly RunStep[] {
  const { failed_node: node, ended_at: endedAt } = run;
  if (node === null || endedAt === null || run.steps.some((step) => step.node === node)) return run.steps;
  return [
    ...run.steps,
    {
      node,
      status: "failed",
      // Unknown, like its start; the detail shows neither.
      attempts: 0,
      started_at: endedAt,
      ended_at: endedAt,
      duration_ms: null,
      output: null,
      records_total: null,
      records_valid: null,
      records_usual: null,
      turns_begun: null,
      turns_total: null,
      error: run.failure_detail,
      answer: null,
      log: [],
    },
  ];
}
