import { limits } from "./limits.ts";

/** What a trigger asks of the queue: docs/api.md#queue-options. */
export interface QueueOptions {
  /** How long the run waits before it may begin. */
  readonly delayMs: number | null;
  /** Among the waiting runs of its account, higher ones begin first. */
  readonly priority: number;
  /** It fails unless it has begun by then, counted from the trigger. */
  readonly expiresInMs: number | null;
}

export const QUEUE_HEADERS = ["Latchkey-Delay", "Latchkey-Priority", "Latchkey-Expires-In"] as const;
export type QueueHeader = (typeof QUEUE_HEADERS)[number];

interface Refused {
  readonly name: string;
  readonly problem: string;
}

/** What the options are called where they were sent. */
type Names = Readonly<Record<QueueHeader, string>>;
const HEADER_NAMES: Names = {
  "Latchkey-Delay": "Latchkey-Delay",
  "Latchkey-Priority": "Latchkey-Priority",
  "Latchkey-Expires-In": "Latchkey-Expires-In",
};

const DELAY_SECONDS_MAX = limits.runDelayMsMax / 1_000;
const EXPIRY_SECONDS_MAX = limits.runExpiryMsMax / 1_000;
const { runPriorityMax } = limits;

/** Reads the headers; a header that was not sent is undefined. Blanks around a value do not count (RFC 9110, 5.5). */
export function readQueueOptions(
  sent: Readonly<Record<QueueHeader, string | undefined>>,
  names: Names = HEADER_NAMES,
): { readonly options: QueueOptions } | { readonly refused: Refused } {
  const delay = wholeNumber(sent["Latchkey-Delay"], 0, DELAY_SECONDS_MAX);
  if (delay === undefined)
    return refuse(
      names["Latchkey-Delay"],
      `must be a whole number of seconds from 0 to ${DELAY_SECONDS_MAX}.`,
    );
  const priority = wholeNumber(sent["Latchkey-Priority"], -runPriorityMax, runPriorityMax);
  if (priority === undefined)
    return refuse(
      names["Latchkey-Priority"],
      `must be a whole number from ${-runPriorityMax} to ${runPriorityMax}.`,
    );
  const expiresIn = wholeNumber(sent["Latchkey-Expires-In"], 1, EXPIRY_SECONDS_MAX);
  if (expiresIn === undefined)
    return refuse(
      names["Latchkey-Expires-In"],
      `must be a whole number of seconds from 1 to ${EXPIRY_SECONDS_MAX}.`,
    );
  if (expiresIn !== null && expiresIn <= (delay ?? 0))
    return refuse(
      names["Latchkey-Expires-In"],
      `must be greater than \`${names["Latchkey-Delay"]}\`: otherwise the run could never begin.`,
    );
  return {
    options: {
      delayMs: delay ? delay * 1_000 : null,
      priority: priority ?? 0,
      expiresInMs: expiresIn === null ? null : expiresIn * 1_000,
    },
  };
}

const refuse = (name: string, problem: string) => ({ refused: { name, problem: `\`${name}\` ${problem}` } });

/** null: not sent. undefined: not a whole number within the limits. */
function wholeNumber(text: string | undefined, least: number, most: number): number | null | undefined {
  if (text === undefined) return null;
  // No more digits than a safe integer has; "-0" is 0.
  if (!/^-?[0-9]{1,15}$/.test(text.trim())) return undefined;
  const number = Number(text) + 0;
  return number >= least && number <= most ? number : undefined;
}
