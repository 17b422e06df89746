import type { Blueprint } from "./blueprint.ts";
import { limits } from "./limits.ts";

/** The slot of a test login's credential. */
export const TEST_LOGIN_SLOT = "login";

/** The Blueprint of a test login: a login without nodes. It is in no document and no list. */
export const TEST_LOGIN: Blueprint = {
  key: "",
  account: "",
  name: "Test login",
  hosts: [],
  credentials: [{ slot: TEST_LOGIN_SLOT, strategyId: "" }],
  metadata: [],
  timeoutMs: limits.runTimeoutMs,
  retentionMs: null,
  concurrency: null,
  nodes: [],
  retired: false,
};

/** The log entry of a login step that was skipped because of its `when`. */
export const SKIPPED_LINE = { message: "left out: its `when` is not true" } as const;

/** Whether a line of a step's log is this entry. */
export const isSkipped = (line: unknown): boolean =>
  typeof line === "object" && line !== null && "message" in line && line.message === SKIPPED_LINE.message;
