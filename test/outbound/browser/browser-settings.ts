import type { BrowserSettings } from "#outbound/browser/browsers.ts";

/** By itself, for a process that must not load the driver before its time. */
export const SETTINGS: Omit<BrowserSettings, "program"> = {
  max: 2,
  memoryBytes: 1_073_741_824,
  sandbox: true,
  network: "host",
  uids: { first: 61_184, count: 64 },
};
