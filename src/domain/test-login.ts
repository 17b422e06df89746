import type { Blueprint } from "./blueprint.ts";
import { limits } from "./limits.ts";

/** What the one credential of a test login is called in its run. */
export const TEST_LOGIN_SLOT = "login";

/** What a run without a Blueprint carries: its login, and nothing after it. No document says it, and no list shows it. */
export const TEST_LOGIN: Blueprint = {
  key: "",
  account: "",
  name: "Test login",
  hosts: [],
  credentials: [{ slot: TEST_LOGIN_SLOT, strategyId: "" }],
  metadata: [],
  timeoutMs: limits.runTimeoutMs,
  retentionMs: null,
  nodes: [],
  retired: false,
};
