import { REVIEW_STATE_NAMES, STEP_STATE_NAMES } from "#domain/labels/states.ts";
import type { Run, RunStep } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

const TONES = {
  done: ["good", STEP_STATE_NAMES.done],
  failed: ["bad", STEP_STATE_NAMES.failed],
  started: ["running", STEP_STATE_NAMES.started],
  skipped: ["quiet", STEP_STATE_NAMES.skipped],
} as const;

export function StepMark({ step, run }: { readonly step: RunStep; readonly run: Run }) {
  const isOpen = step.status === "started";
  if (isOpen && run.reviews.some(({ node, status }) => node === step.node && status === "open"))
    return <Mark tone="waiting">{REVIEW_STATE_NAMES.open}</Mark>;
  if (isOpen && run.ended_at !== null) return <Mark tone="quiet">{STEP_STATE_NAMES.stopped}</Mark>;
  // The run completed, but the result is suspicious.
  if (step.status === "done" && step.records_total === 0 && (step.records_usual ?? 0) > 0)
    return <Mark tone="waiting">Unexpectedly empty</Mark>;
  const [tone, text] = TONES[step.status];
  return <Mark tone={tone}>{text}</Mark>;
}
