/** The label for each state, the same in the dashboard and on the command line. `--json` and the API use the keys. */
import type { ProposalStatus } from "#domain/proposal.ts";
import type { RunErrorKind, RunStatus } from "#domain/run.ts";

export const RUN_STATUS_NAMES: Readonly<Record<RunStatus, string>> = {
  queued: "Queued",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

const RUN_STEP_NAMES: Readonly<Record<string, string>> = {
  authenticating: "Logging in",
  awaiting_review: "Awaiting review",
  awaiting_input: "Awaiting input",
};

/** A run's state: the name of its step if there is one (milestones have none), otherwise of its status. */
export const runStateName = (status: RunStatus, step: string): string =>
  RUN_STEP_NAMES[step] ?? RUN_STATUS_NAMES[status];

/** The kinds of failure. */
const FAILURE_NAMES: Readonly<Record<RunErrorKind, string>> = {
  login: "Login failed",
  credential_deleted: "Credential deleted",
  target: "Target failed",
  data: "Invalid data",
  timeout: "Timed out",
  review_timeout: "Review timed out",
  interrupted: "Workers lost",
  expired: "Expired before it began",
  vault: "Vault failed",
  internal: "Internal error",
  page_changed: "Page changed",
  captcha: "Captcha",
  passkey_only: "Passkey only",
  blocked: "Request blocked",
  browser_missing: "No browser",
  browser_crashed: "Browser crashed",
};

/** `failure`: the kind in an answer of the API. */
export const failureName = (failure: string): string =>
  FAILURE_NAMES[failure as RunErrorKind] ?? `Failed: ${failure}`;

/** The reasons for which a run may wait. */
export const WAIT_NAMES = {
  place: "Concurrency limit",
  blueprint: "Concurrency limit of the Blueprint",
  throttle: "Throttle of a node or a host",
  browser: "Browser",
  credential: "Another run with the same credential",
  review: "Review",
  write: "Decision on a write",
  target: "Next poll of the target",
  delay: "Delay asked by the caller",
  worker: "Worker",
  nothing: "Running",
} as const;

/** What a run waits for whose Blueprint has `concurrency`. */
export const blueprintWaitName = (wait: { readonly limit: number; readonly has_key: boolean }): string =>
  `other runs of its Blueprint${wait.has_key ? " with the same key" : ""}, of which at most ${wait.limit} are executed at once`;

/** What a run waits for in the queue of a throttle, of a node or of a host. */
export const throttleWaitName = (of: string): string =>
  of.includes("://")
    ? `its turn under the account's \`throttle\` of ${of}`
    : `its turn under the \`throttle\` of the node ${of}`;

/** The state of a node in a run. */
export const STEP_STATE_NAMES = {
  started: "Running",
  done: "Done",
  failed: "Failed",
  skipped: "Skipped",
  /** Its run ended first. */
  stopped: "Stopped",
  pending: "Not started",
  /** Its run ended before it began. */
  unreached: "Not reached",
  unknown: "Not recorded",
} as const;

export const REVIEW_STATE_NAMES = {
  open: "Awaiting review",
  approved: "Approved",
  rejected: "Rejected",
  timed_out: "Timed out",
  closed: "Closed: its run has ended",
} as const;

/** What happens to a review that is not decided in time. */
export const onTimeoutName = (onTimeout: string | null): string =>
  onTimeout === "approve" ? "Approved automatically" : "Run fails";

/** The decisions on reviews that require a second factor. */
export const REVIEW_STEP_UP_NAMES = {
  always: "Always",
  before_writes: "If the Blueprint may write afterwards",
  never: "Never",
} as const;

export const PROPOSAL_STATE_NAMES: Readonly<Record<ProposalStatus, string>> = {
  open: "Awaiting confirmation",
  confirmed: "Confirmed, not yet applied",
  applied: "Applied",
  discarded: "Discarded",
  expired: "Expired",
  stale: "Superseded",
};

/** The state of a credential session. */
export const SESSION_STATE_NAMES: Readonly<Record<string, string>> = {
  pending: "Pending",
  completed: "Completed",
  expired: "Expired",
};

export const CREDENTIAL_STATE_NAMES = { locked: "Locked", loggedIn: "Logged in", ready: "Ready" } as const;

/** Rejected logins in a row, of a credential that is not locked yet. */
export const rejectedName = (count: number): string =>
  count === 1 ? "1 rejected login" : `${count} rejected logins`;

export const KEY_STATE_NAMES = {
  active: "Active",
  expiring: "Active, expires",
  expired: "Expired",
  revoked: "Revoked",
} as const;

/** The version of a document that new runs and new forms use. */
export const CURRENT_VERSION_NAME = "Current";
/** A document that is no longer used. */
export const RETIRED_NAME = "Retired";
/** An operator that can't sign in. */
export const DISABLED_NAME = "Disabled";

export const WORKER_STATE_NAMES = { healthy: "Healthy", silent: "Not responding" } as const;

export const MASTER_KEY_STATE_NAMES = {
  primary: "Primary",
  decryptsOnly: "Decrypts only",
  notRegistered: "Not registered",
} as const;

/** What ends the lock of a credential, for a log and a command line. */
export const lockRemedy = (lockedUntil: string, credentialId: string): string =>
  `The next is tried after ${lockedUntil}, with a new credential, or after \`latchkey credentials unlock ${credentialId}\`.`;

const REMEDY =
  / The next is tried after \S+, with a new credential, or after `latchkey credentials unlock \w+`\./;

/** A run's failure without the remedy, for a page that has a button for it and shows the time in the reader's zone. */
export const withoutLockRemedy = (detail: string): string => detail.replace(REMEDY, "");

/** A run's failure without how often the login was rejected before, for a page that says it already. */
export const withoutRejections = (detail: string): string =>
  detail.replace(/ \(\d+ rejected logins? in a row[^)]*\)/, "");

/** Where in a strategy's login it happened. */
const LOGIN_PLACE = /^strat_[\w-]+: (?:login step \d+ \([^)]*\): )?/;

/** A failed login without its place, for a line that has room for what happened alone. */
export const withoutLoginPlace = (detail: string): string => detail.replace(LOGIN_PLACE, "");

/** Why a run failed, for one line of a list: what happened, without the place, which the run's page has. */
export const failureLine = (detail: string): string =>
  withoutRejections(withoutLoginPlace(withoutLockRemedy(detail)))
    .replace(/^Node [\w-]+: /, "")
    .replace(/^expected status (\d+), got (\d+)/, "Answered $2, not $1")
    .replace(/^The value is not JSON/, "Not valid JSON")
    .replace(/\.$/, "");

/** The state of a run in lists: a completed one may have passed on records with errors. */
export function runOutcomeName(run: {
  readonly status: RunStatus;
  readonly progress_step: string;
  readonly failure: string | null;
  readonly is_sign_in: boolean;
  readonly records_with_errors: number | null;
}): string {
  if (run.is_sign_in && run.failure === "login") return "Login refused at sign-in";
  if (run.failure !== null) return failureName(run.failure);
  const wrong = run.records_with_errors ?? 0;
  const state = runStateName(run.status, run.progress_step);
  return wrong === 0 ? state : `${state}, ${wrong.toLocaleString("en")} with errors`;
}
