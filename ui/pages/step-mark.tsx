import type { RunStep } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

const TONES = {
  done: ["good", "Done"],
  failed: ["bad", "Failed"],
  started: ["running", "Under way"],
} as const;

export function StepMark({ step }: { readonly step: RunStep }) {
  // The run completed, and yet somebody should look.
  if (step.status === "done" && step.records_total === 0 && (step.records_usual ?? 0) > 0)
    return <Mark tone="waiting">Suddenly none</Mark>;
  const [tone, text] = TONES[step.status];
  return <Mark tone={tone}>{text}</Mark>;
}
