import type { Failpoint } from "#lib/failpoint.ts";
import type { Installation } from "../service.ts";

/** What brings a worker to a point: a run that goes all the way, one that fails, a SIGTERM, or a dead worker's runs. */
export type Scenario = "whole" | "breaks" | "drain" | "take_over";

/** Requests, loops, keepers and starts come by these: test/idempotency/crash.pg.test.ts, test/flow/loops-crash.pg.test.ts, test/flow/browser-crash.pg.test.ts, test/oauth, test/audit, test/db, test/blobs, test/schedules and test/webhooks have them; those of the gate freeze (test/flow/self-fence.pg.test.ts). */
export const ELSEWHERE =
  /^(idempotency|trigger|turn|session|credential|audit|oauth|database|gate|sweep|browser|webhook|schedule)\.|^run\.after_cancel$/;
type Elsewhere =
  | `${"idempotency" | "trigger" | "turn" | "session" | "credential" | "audit" | "oauth" | "database" | "gate" | "sweep" | "browser" | "webhook" | "schedule"}.${string}`
  | "run.after_cancel";

/** Every point between the claim of a run and its terminal state: without the new one this does not compile. */
export const RUN_POINTS: Readonly<Record<Exclude<Failpoint, Elsewhere>, Scenario>> = {
  "run.after_claim": "whole",
  "run.before_login": "whole",
  "run.after_login": "whole",
  "run.after_start": "whole",
  "step.before_start": "whole",
  "step.after_start": "whole",
  "step.before_finish": "whole",
  "step.after_finish": "whole",
  "step.before_source": "whole",
  "step.after_source": "whole",
  "write.before_intent": "whole",
  "write.after_intent": "whole",
  "write.after_effect": "whole",
  "write.after_outcome": "whole",
  "run.before_park": "whole",
  "review.after_insert": "whole",
  "run.after_park": "whole",
  "review.before_commit": "whole",
  "review.after_commit": "whole",
  "run.before_complete": "whole",
  "run.after_complete": "whole",
  "run.before_admit": "whole",
  "run.before_fail": "breaks",
  "run.after_fail": "breaks",
  "run.before_release": "drain",
  "run.after_release": "drain",
  "run.before_claim": "take_over",
  "worker.before_take_over": "take_over",
  "worker.after_take_over": "take_over",
};

export function runPointsOf(...scenarios: readonly Scenario[]): readonly Failpoint[] {
  const all = Object.entries(RUN_POINTS) as [Failpoint, Scenario][];
  return all.flatMap(([point, scenario]) => (scenarios.includes(scenario) ? [point] : []));
}

/** The log names each point that acts, before it does. */
export function actedPoints(
  installation: Installation,
  action: "kill" | "throw" | "delay",
): readonly string[] {
  const told = installation.logs().matchAll(new RegExp(`"failpoint":"([^"]+)","action":"${action}"`, "g"));
  return [...new Set([...told].map(([, point = ""]) => point))].toSorted((a, b) => a.localeCompare(b));
}
