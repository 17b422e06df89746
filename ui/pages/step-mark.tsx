import { STEP_STATE_NAMES } from "#domain/labels/states.ts";
import type { RunStep } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

const TONES = {
  done: ["good", STEP_STATE_NAMES.done],
  failed: ["bad", STEP_STATE_NAMES.failed],
  started: ["running", STEP_STATE_NAMES.started],
} as const;

export function StepMark({ step }: { readonly step: RunStep }) {
  // The run completed, but the result is suspicious.
  if (step.status === "done" && step.records_total === 0 && (step.records_usual ?? 0) > 0)
    return <Mark tone="waiting">Unexpectedly empty</Mark>;
  const [tone, text] = TONES[step.status];
  return <Mark tone={tone}>{text}</Mark>;
}
