import { setTimeout as sleep } from "node:timers/promises";

/** What a named point does when it is reached: nothing, unless the process was started with the point armed. */
type Action = "kill" | "throw" | "delay";

/** Every point in the product, so that a test can enumerate them. A name that is not here does not compile. */
export const FAILPOINTS = [
  "idempotency.after_claim",
  "idempotency.before_commit",
  "idempotency.after_commit",
  "trigger.before_insert",
  "trigger.after_insert",
  "session.after_insert",
  "credential.after_delete",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

const DELAY_MS = 20_000;
const armed = new Map<string, { readonly action: Action; hitsLeft: number }>();

/** Arms points: `name=kill`, `name=throw:3` (at the third hit), separated by commas. Gives what is wrong with the text. */
export function armFailpoints(text: string): readonly string[] {
  const problems: string[] = [];
  for (const item of text.split(",").filter((part) => part !== "")) {
    const match = /^([a-z_.]+)=(kill|throw|delay)(?::(\d+))?$/.exec(item);
    if (!match || !FAILPOINTS.some((name) => name === match[1])) problems.push(`"${item}" is no fail-point with an action`);
    else armed.set(match[1] ?? "", { action: match[2] as Action, hitsLeft: Number(match[3] ?? 1) });
  }
  return problems;
}

/** A place where a test may make the process die, fail or hang. Costs one look into an empty map. */
export async function failpoint(name: Failpoint): Promise<void> {
  if (armed.size === 0) return;
  const point = armed.get(name);
  if (!point || --point.hitsLeft > 0) return;
  if (point.hitsLeft < 0) return;
  if (point.action === "kill") process.kill(process.pid, "SIGKILL");
  if (point.action === "throw") throw new Error(`fail-point ${name}`);
  await sleep(DELAY_MS);
}
