/**
 * Test mode (docs/decisions/0041): an account has a test account with rows of its own. Its documents are derived from the account's, and
 * the only system that they reach is the test target, which is part of the program.
 */

/** The origin of the test target. No name below `.test` is ever registered (RFC 2606), and the gate connects to none of this one's. */
export const TEST_TARGET_ORIGIN = "https://target.latchkey.test";
const { hostname: TEST_TARGET_HOST } = new URL(TEST_TARGET_ORIGIN);

/** Whatever its scheme and port: the gate hands all of them to the test target. */
export const isTestTarget = (url: URL): boolean => url.hostname === TEST_TARGET_HOST;

/** The name of an account's test account. No document can have it, because of the colon. */
export const testSlugOf = (slug: string): string => `${slug}:test`;

/** What a test value decides. `login`: it must be in a field of the form, because a login sees nothing of the trigger. */
interface TestValue {
  readonly at: "login" | "run";
  /** What happens, as docs/test-mode.md and the hosted form say it. */
  readonly effect: string;
}

/** The values that force an outcome, as a field of the form or as the key `test_outcome` of a trigger. */
export const TEST_VALUES = {
  wrong_password: { at: "login", effect: "the target refuses the login, and the run fails" },
  account_locked: { at: "login", effect: "the target says that the login is locked, and the run fails" },
  code_required: {
    at: "login",
    effect: "the target asks for a one-time code: the run fails, unless the form has an authenticator secret",
  },
  login_throttled: { at: "login", effect: "the target answers the login with 429, and the run fails" },
  login_slow: { at: "login", effect: "the login takes five seconds" },
  login_crash: {
    at: "login",
    effect: "the target closes the connection during the login, and the run fails",
  },
  no_records: { at: "run", effect: "the target has no records" },
  records_500: { at: "run", effect: "500 records" },
  large_results: { at: "run", effect: "results of more than 5 MB, which are always delivered by URL" },
  invalid_records: { at: "run", effect: "three records, one of them invalid" },
  throttled: { at: "run", effect: "the target answers every read with 429, and the run fails" },
  slow: { at: "run", effect: "the target answers after five seconds" },
  server_error: { at: "run", effect: "the target answers every read with 500, and the run fails" },
  target_crash: { at: "run", effect: "the target closes the connection in mid-answer, and the run fails" },
  page_changed: { at: "run", effect: "the target answers with another page, and the run fails" },
  review: { at: "run", effect: "the run waits for a review, for an hour at most; then it goes on" },
  write: { at: "run", effect: "a write is sent, and the target accepts it" },
  write_refused: { at: "run", effect: "a write is sent, the target refuses it, and the run fails" },
  write_uncertain: {
    at: "run",
    effect: "the connection breaks during a write: it may have happened, and an operator decides",
  },
} as const satisfies Readonly<Record<string, TestValue>>;

export type TestOutcome = keyof typeof TEST_VALUES;

const isOutcome = (text: string): text is TestOutcome => Object.hasOwn(TEST_VALUES, text);

/** The outcome that a text names: `slow`, and for a field of type `email` `slow@example.com`; null: none. */
export function readTestOutcome(text: string): TestOutcome | null {
  const [name = ""] = text.trim().split("@");
  return isOutcome(name) ? name : null;
}
