import { limits } from "#domain/limits.ts";
import type { Quotas } from "#domain/quotas.ts";
import type { Checked, Setting } from "./read-value.ts";

const MEGABYTE = 1_000_000;

export const QUOTA_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_QUEUED_RUNS",
    type: "1 to 100000000, or off",
    default: String(limits.accountQueuedRuns),
    description:
      "Most runs of one account that may wait at once, for a slot or for a busy credential. Above it, a trigger is answered with 429.",
  },
  {
    name: "LATCHKEY_STORED_MB",
    type: "1 to 100000000, or off",
    default: String(limits.accountStoredBytes / MEGABYTE),
    description:
      "Most megabytes (10^6 bytes) that one account may store: inputs, and objects of steps and results. Above it, a trigger is answered with 422.",
  },
];

/** The quotas of every account. */
export function readQuotas(checked: Checked): Quotas {
  const upTo = (name: string, fallback: number): number | null => {
    const value = checked<number | "off">(name, wholeOrOff, `a number from 1 to ${MOST}, or off`, fallback);
    return value === "off" ? null : value;
  };
  const megabytes = upTo("LATCHKEY_STORED_MB", limits.accountStoredBytes / MEGABYTE);
  return {
    queuedRuns: upTo("LATCHKEY_QUEUED_RUNS", limits.accountQueuedRuns),
    storedBytes: megabytes === null ? null : megabytes * MEGABYTE,
  };
}

const MOST = 100_000_000;

function wholeOrOff(text: string): number | "off" | undefined {
  if (text === "off") return text;
  return /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST ? Number(text) : undefined;
}
