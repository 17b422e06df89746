import { Text } from "@mantine/core";
import type { Run, RunStep } from "../parts/answers.ts";
import { useNow } from "../parts/now.ts";
import { formatDuration } from "../parts/time.tsx";
import { RunStepDetail } from "./run-step-detail.tsx";
import { readTimeline, type Interval, type Timeline } from "./run-timeline.ts";
import styles from "./run-steps.module.css";
import { StepMark } from "./step-mark.tsx";

/** Why no step is shown. */
function explainNoSteps(run: Run): string {
  if (run.purged_at !== null) return "The steps' data was purged.";
  if (run.failure === "login") return "The login failed, so no step started.";
  if (run.started_at === null)
    return run.ended_at === null ? "No step has started yet." : "The run ended before its first step.";
  return "No step has made a request, and only those are recorded. The graph shows all steps.";
}

/** Queueing, login and steps, each at its time within the run. */
export function RunTimeline(props: {
  readonly run: Run;
  readonly steps: readonly RunStep[];
  readonly opened: string | null;
  readonly onOpen: (node: string | null) => void;
}) {
  const { run, steps, opened } = props;
  const timeline = readTimeline(run, useNow());
  return (
    <>
      <ol className={styles["steps"]}>
        {timeline.phases.map((phase) => (
          <li key={phase.name} className={styles["phase"]}>
            <span>{phase.name}</span>
            <span />
            <Bar of={timeline} pieces={[{ ...phase, kind: phase.kind }]} />
            <span className={styles["took"]}>{formatDuration(phase.toMs - phase.fromMs)}</span>
          </li>
        ))}
        {steps.map((step) => (
          <li key={step.node}>
            <StepRow
              run={run}
              step={step}
              timeline={timeline}
              isOpen={opened === step.node}
              onOpen={() => props.onOpen(opened === step.node ? null : step.node)}
            />
            {opened === step.node && <RunStepDetail step={step} />}
          </li>
        ))}
      </ol>
      {steps.length === 0 && (
        <Text size="sm" c="dimmed" mt="sm">
          {explainNoSteps(run)}
        </Text>
      )}
    </>
  );
}

function StepRow(props: {
  readonly run: Run;
  readonly step: RunStep;
  readonly timeline: Timeline;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}) {
  const { run, step, timeline } = props;
  const fromMs = Date.parse(step.started_at);
  const toMs = step.ended_at === null ? timeline.toMs : Date.parse(step.ended_at);
  const waits = timeline.waits.filter(({ node }) => node === step.node);
  const waitedMs = waits.reduce((sum, wait) => sum + wait.toMs - wait.fromMs, 0);
  return (
    <button type="button" className={styles["step"]} aria-expanded={props.isOpen} onClick={props.onOpen}>
      <span className={styles["name"]}>{step.node}</span>
      <StepMark step={step} run={run} />
      <Bar
        of={timeline}
        pieces={[{ fromMs, toMs, kind: step.status }, ...waits.map((wait) => ({ ...wait, kind: "waiting" }))]}
      />
      <span className={styles["took"]}>
        {step.duration_ms === null && step.ended_at !== null
          ? "–"
          : formatDuration(Math.max(toMs - fromMs, 0))}
        {waitedMs > 0 && <span className={styles["waited"]}>waiting {formatDuration(waitedMs)}</span>}
      </span>
    </button>
  );
}

/** The minimum visible width of a bar, in percent. */
const SEEN_MIN = 0.6;

function Bar({
  of: { fromMs, toMs },
  pieces,
}: {
  readonly of: Interval;
  readonly pieces: readonly (Interval & { readonly kind: string })[];
}) {
  const placeOf = (ms: number): number =>
    Math.min(Math.max(((ms - fromMs) / Math.max(toMs - fromMs, 1)) * 100, 0), 100);
  return (
    <span className={styles["bar"]} aria-hidden="true">
      {pieces.map((piece) => {
        const left = Math.min(placeOf(piece.fromMs), 100 - SEEN_MIN);
        const width = Math.max(placeOf(piece.toMs) - left, SEEN_MIN);
        return (
          <span
            key={`${piece.kind} ${piece.fromMs}`}
            className={styles["piece"]}
            data-kind={piece.kind}
            style={{ left: `${left}%`, width: `${width}%` }}
          />
        );
      })}
    </span>
  );
}
