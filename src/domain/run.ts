/** Spec, Blueprint run `status`. An open set for callers, a closed one in this service. */
export const RUN_STATUSES = ["queued", "running", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** docs/api.md#runs. The same table guards the UPDATE, drives the tests and is rendered into the docs. */
export const RUN_TRANSITIONS = {
  queued: ["running", "failed", "cancelled"],
  running: ["completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
} as const satisfies Record<RunStatus, readonly RunStatus[]>;

/** Spec, Blueprint run `status`, column "progress_step values": the steps within each status. */
export const RUN_STEPS = {
  queued: ["queued", "authenticating"],
  running: ["running", "awaiting_review"],
  completed: ["completed"],
  failed: ["failed"],
  cancelled: ["cancelled"],
} as const satisfies Record<RunStatus, readonly string[]>;

/** Spec, Run status projection: the eight built-in steps. A milestone may have none of these names. */
export const BUILT_IN_STEPS: readonly string[] = [...Object.values(RUN_STEPS).flat(), "unknown"];

export const MILESTONE_PATTERN = "^[a-z][a-z0-9_]{0,63}$";

export const TERMINAL_RUN_STATUSES = RUN_STATUSES.filter((status) => RUN_TRANSITIONS[status].length === 0);

export function isTerminal(status: RunStatus): boolean {
  return TERMINAL_RUN_STATUSES.includes(status);
}

/** The statuses from which a run may change to `status`, for `where status = any(…)` of an UPDATE. */
export function runStatusesBefore(status: RunStatus): readonly RunStatus[] {
  return RUN_STATUSES.filter((from) => (RUN_TRANSITIONS[from] as readonly RunStatus[]).includes(status));
}

/** Why a run failed, for the operator. */
export type RunErrorKind =
  | "login"
  | "credential_deleted"
  | "target"
  | "data"
  | "timeout"
  /** A review timed out. */
  | "review_timeout"
  /** A browser's page does not have what a step describes. */
  | "page_changed"
  /** A browser's page asks for what only a person has. */
  | "captcha"
  | "passkey_only"
  /** The egress rules refused a browser's page. */
  | "blocked"
  | "browser_missing"
  | "browser_crashed"
  | "interrupted"
  /** It had not begun when its time to begin ended. */
  | "expired"
  | "vault"
  | "internal";

/**
 * The message for callers about every failed run. Spec, Errors: causes of failure "are not distinguishable through the API", so
 * there is one message for all causes.
 */
export const RUN_ERROR = {
  code: "execution_failed",
  message: "The run did not complete. The operator's dashboard shows why.",
} as const;

export interface RunProjection {
  readonly id: string;
  readonly runKey: string;
  readonly status: RunStatus;
  readonly progressStep: string;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly blueprintId: string;
}

/** Spec, Run status projection: exactly these nine fields, and no run content. */
export function projectRun(run: RunProjection) {
  return {
    id: run.id,
    run_key: run.runKey,
    status: run.status,
    // docs/api.md#runs: `unknown` only when a stored step is not recognised.
    progress_step: isShownStep(run.progressStep) ? run.progressStep : "unknown",
    created_at: run.createdAt.toISOString(),
    started_at: run.startedAt?.toISOString() ?? null,
    ended_at: run.endedAt?.toISOString() ?? null,
    // Spec, Run terminal errors: non-null only when failed; `execution_failed` for every failed run today.
    error: run.status === "failed" ? RUN_ERROR : null,
    blueprint_id: run.blueprintId,
  };
}

function isShownStep(step: string): boolean {
  return BUILT_IN_STEPS.includes(step) || new RegExp(MILESTONE_PATTERN).test(step);
}
