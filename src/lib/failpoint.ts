import { setTimeout as sleep } from "node:timers/promises";

/** Every fail-point, so that a test can enumerate them. An unlisted name does not compile. */
export const FAILPOINTS = [
  "idempotency.before_claim",
  "idempotency.after_claim",
  "idempotency.before_commit",
  "idempotency.after_commit",
  "trigger.before_insert",
  "trigger.after_insert",
  "session.after_insert",
  "session.after_complete",
  "session.after_candidate",
  "session.after_verdict",
  "credential.after_delete",
  "write.before_intent",
  "write.after_intent",
  "write.after_effect",
  "write.after_outcome",
  "turn.before_keep",
  "turn.after_keep",
  "schedule.before_commit",
  "schedule.after_commit",
  "run.before_admit",
  "run.before_claim",
  "run.after_claim",
  "run.before_login",
  "run.after_login",
  "run.after_start",
  "step.before_start",
  "step.after_start",
  "step.before_source",
  "step.after_source",
  "step.before_finish",
  "step.after_finish",
  "run.before_complete",
  "run.after_complete",
  "run.before_fail",
  "run.after_fail",
  "run.before_release",
  "run.after_release",
  "run.before_park",
  "run.after_park",
  "worker.before_take_over",
  "worker.after_take_over",
  "review.after_insert",
  "review.before_commit",
  "review.after_commit",
  "run.after_cancel",
  "credential.after_tombstone",
  "audit.before_close",
  "audit.after_close",
  "audit.before_checkpoint",
  "audit.after_checkpoint",
  "audit.after_detach_batch",
  "oauth.after_exchange",
  "oauth.before_keep",
  "database.after_password",
  "database.after_role",
  "database.before_grants",
  "gate.before_hop",
  "gate.before_dial",
  "gate.after_lookup",
  "gate.after_dial",
  "sweep.after_page",
  "browser.after_open",
  "browser.before_step",
  "browser.after_steps",
  "webhook.before_send",
  "webhook.after_send",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

/** The action of a point, executed once, when the point is reached for the `hit`th time. */
export interface FailpointAction {
  readonly name: Failpoint;
  readonly action: "kill" | "throw" | "delay" | "freeze";
  readonly hit: number;
}

const DELAY_MS = 20_000;
const armed = new Map<Failpoint, { readonly action: FailpointAction["action"]; hitsLeft: number }>();
let tell: (name: Failpoint, action: FailpointAction["action"]) => void = () => {};

/** Reads `name=kill`, `name=throw:3` (at the third hit), separated by commas. null: the text is invalid. */
export function parseFailpoints(text: string): readonly FailpointAction[] | null {
  const actions = text.split(",").map((item) => {
    const match = /^([a-z_.]+)=(kill|throw|delay|freeze)(?::([1-9]\d{0,5}))?$/.exec(item.trim());
    const name = FAILPOINTS.find((point) => point === match?.[1]);
    return name && { name, action: match?.[2] as FailpointAction["action"], hit: Number(match?.[3] ?? 1) };
  });
  const known = actions.filter((action) => action !== undefined);
  return known.length === actions.length ? known : null;
}

/** `onAct` is called before a point acts, so that tests find in the log which points were reached. */
export function armFailpoints(
  actions: readonly FailpointAction[],
  onAct: (name: Failpoint, action: FailpointAction["action"]) => void = () => {},
): void {
  for (const { name, action, hit } of actions) armed.set(name, { action, hitsLeft: hit });
  tell = onAct;
}

/** Determines the action of a point that is reached. undefined: none. Otherwise the point waits for the promise, and rejects if it does. */
export type FailpointHandler = (name: Failpoint) => Promise<void> | undefined;
let handler: FailpointHandler | null = null;

/**
 * Installs a handler for a simulation, which runs many processes in one, and pauses and crashes them at points in virtual time.
 * null removes it.
 */
export function handleFailpoints(given: FailpointHandler | null): void {
  handler = given;
}

/** Whether any point may still act. Synchronous code takes an asynchronous path only then. */
export const areFailpointsArmed = (): boolean => armed.size > 0;

/** A point at which a test can make the process die, fail, hang or stop. In production it costs one lookup in an empty map. */
export const failpoint = (name: Failpoint): Promise<void> =>
  armed.size === 0 && handler === null ? PASSED : reach(name);

/** A run passes some twenty points: they share a promise. */
const PASSED = Promise.resolve();

async function reach(name: Failpoint): Promise<void> {
  await handler?.(name);
  const point = armed.get(name);
  if (!point || --point.hitsLeft !== 0) return;
  tell(name, point.action);
  if (point.action === "kill") process.kill(process.pid, "SIGKILL");
  // The log shows an error's code: a test counts there which points were reached.
  if (point.action === "throw") throw Object.assign(new Error(`fail-point ${name}`), { code: name });
  // Until SIGCONT: like a suspended machine or a swapping process.
  if (point.action === "freeze") process.kill(process.pid, "SIGSTOP");
  else await sleep(DELAY_MS);
}
