import type { NewEvidence } from "#domain/page-evidence.ts";
import type { RunErrorKind } from "#domain/run.ts";

/** What went wrong in a step; `kind` is what it means for the run. */
export type StepFailureCode =
  /** No element, or none in the state that the step needs, within the step's time. */
  | "not_found"
  | "ambiguous"
  | "not_ready"
  /** An `expect` or a `wait` is not met, or the page shows other data than the step describes. */
  | "unexpected"
  /** The target refused the login. */
  | "rejected"
  /** The page or the field is not one that may receive the secret. */
  | "secret_refused"
  /** The step's URL is not of the allowed hosts, or the egress gate refused the page. */
  | "blocked"
  /** The page could not be loaded. */
  | "unreachable"
  /** The page says that the session has ended. */
  | "expired"
  | "captcha"
  | "passkey_only"
  | "browser_missing"
  | "browser_crashed"
  | "timeout";

const KINDS: Readonly<Partial<Record<StepFailureCode, RunErrorKind>>> = {
  not_found: "page_changed",
  ambiguous: "page_changed",
  not_ready: "page_changed",
  unexpected: "page_changed",
  expired: "login",
  captcha: "captcha",
  passkey_only: "passkey_only",
  blocked: "blocked",
  browser_missing: "browser_missing",
  browser_crashed: "browser_crashed",
  timeout: "timeout",
};

/**
 * A step failed. The message is ours: it has the document's words and the names of elements of the page, and never a text of the
 * driver, whose messages contain the values that were typed.
 */
export class StepFailure extends Error {
  override readonly name = "StepFailure";
  readonly code: StepFailureCode;
  /** Where the step stands in its document, relative to the login or the node: `["steps", 2]`. */
  readonly path: readonly (string | number)[];
  /** What the page showed; null: it was not looked at. */
  readonly evidence: NewEvidence | null;

  constructor(
    code: StepFailureCode,
    message: string,
    path: readonly (string | number)[] = [],
    evidence: NewEvidence | null = null,
  ) {
    super(message);
    this.code = code;
    this.path = path;
    this.evidence = evidence;
  }

  /** Undefined: the usual kind of the login or the node, such as `login` or `target`. */
  get kind(): RunErrorKind | undefined {
    return KINDS[this.code];
  }

  /** Whether trying again from the first step, in a new page, may help. */
  get isPassing(): boolean {
    return ["unreachable", "browser_crashed", "not_found", "not_ready", "unexpected", "timeout"].includes(
      this.code,
    );
  }
}
