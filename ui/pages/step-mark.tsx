import type { RunStep } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

const TONES = {
  done: ["good", "Done"],
  failed: ["bad", "Failed"],
  started: ["running", "Under way"],
} as const;

export function StepMark({ step }: { readonly step: RunStep }) {
  const [tone, text] = TONES[step.status];
  return <Mark tone={tone}>{text}</Mark>;
}
