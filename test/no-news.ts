import type { Services } from "#actions/services.ts";

/** For tests without other processes, which need no notification. */
export const NO_NEWS: Services["news"] = {
  announce: () => {},
  notifyStop: () => {},
  notifyRunnable: () => {},
  notifyLeft: () => {},
  subscribe: () => () => {},
};

/** The address that end users of tests come from. */
export const ADDRESS = "192.0.2.1";
