import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { LoginSession } from "#strategies/define-login.ts";

/** The end user's values, by field key. */
export type CredentialFields = ReadonlyMap<string, string>;

/** How far a login has got: explains its failure. */
export interface LoginCourse {
  /** The step as the document names it; null: not begun. */
  readonly step: string | null;
  /** The last answer, which a failure refers to. */
  readonly answer: OutboundResponse | null;
  /** The values that it has received so far, in the form of a session. */
  readonly session: LoginSession;
}
