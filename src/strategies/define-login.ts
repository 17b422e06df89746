import type { TObject } from "typebox";
import type { BoundExpressions } from "#domain/expression.ts";
import type { FormIssue } from "#domain/form-issue.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { RunErrorKind } from "#domain/run.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { DigestUser } from "./digest-auth.ts";
import type { OAuthLogin } from "./oauth/oauth-access.ts";

/** The result of a login, with everything that later requests need. Secret and serialisable: it is sealed when it is cached. */
export interface LoginSession {
  /** Added to every request to the strategy's hosts. Lower-case names. */
  readonly headers: { readonly [name: string]: string };
  /** Query parameters that are added to every request to the strategy's hosts; only the target sees them. */
  readonly query?: readonly (readonly [name: string, value: string])[] | undefined;
  /** A client certificate (PEM) for connections to the strategy's hosts. */
  readonly certificate?: { readonly certificate: string; readonly key: string } | undefined;
  /** User name and password for HTTP Digest: requests prove knowledge of the password without sending it. */
  readonly digest?: DigestUser | undefined;
  /** A serialised cookie jar, or null. */
  readonly cookies: JsonObject | null;
  /** Values that the login extracted from the target's answers. */
  readonly extracted?: ExtractedTexts | undefined;
  /** One-time codes that this login sent. */
  readonly codes?: readonly string[] | undefined;
  /** The cookies and storage of a browser that is logged in, for the browsers of nodes. */
  readonly browser?: JsonObject | undefined;
  /** It must not be cached: the browser has a key that its state does not have. */
  readonly isRestorable?: false;
}

/** A browser that logs in. */
export interface LoginBrowser extends StepBrowser {
  /**
   * What the hosts have left in the browser; their cookies are put into the jar of the login. Throws StepFailure if it is more than a
   * session may have.
   */
  capture(): Promise<CapturedSession>;
}

export interface CapturedSession {
  readonly state: JsonObject;
  /** The storage of the hosts, by name; where two have the same name, of the first host. */
  readonly storage: {
    readonly local: Readonly<Record<string, string>>;
    readonly session: Readonly<Record<string, string>>;
  };
  /** Whether the state brings the login back: a key that can't be read is missing from it. */
  readonly isRestorable: boolean;
  /** The values of the storage that may be tokens. */
  readonly secrets: readonly string[];
}

/** Strings and numbers that a login extracted: secret ones, and those with `secret: false`. */
export interface ExtractedTexts {
  readonly secret: readonly string[];
  readonly open: readonly string[];
}

/** The capabilities of a login. Its requests can only reach the strategy's `hosts`. */
export interface LoginContext {
  readonly strategy: Strategy;
  readonly signal: AbortSignal;
  /** The credential's field, or undefined if the end user left it empty. Only logins have access to it. */
  field(key: string): string | undefined;
  /**
   * With `$credential` bound; variables contain the values that earlier steps extracted. Rendering `$credential.<field>.code`
   * marks a one-time code as used.
   */
  readonly expressions: BoundExpressions;
  /** Sends with the jar's cookies, and keeps the cookies of the answer. */
  send(request: OutboundRequest): Promise<OutboundResponse>;
  /**
   * Opens a browser that reaches the strategy's hosts, and closes it afterwards; within a session, with its cookies and storage. Throws
   * StepFailure if there is none.
   */
  browse<T>(work: (browser: LoginBrowser) => Promise<T>): Promise<T>;
  /** Calls a function with a context whose requests use this session: its headers, parameters and certificate. */
  within<T>(session: LoginSession, work: (context: LoginContext) => Promise<T>): Promise<T>;
  /** Waits. Throws when `signal` aborts. */
  sleep(ms: number): Promise<void>;
  /** The current cookie jar. */
  cookies(): JsonObject;
  /** The session that the target has rejected although it seemed valid: a new one is needed. */
  readonly refused?: LoginSession | undefined;
  /** Receives the progress of a login with several steps, if a trace is wanted. */
  readonly steps?: LoginSteps | undefined;
  /** Token endpoints and stored tokens, for `oauth2`. */
  readonly oauth?: OAuthLogin | undefined;
}

/** The progress of a login, described with the document's text and never with a rendered value. */
export interface LoginSteps {
  begin(step: string): void;
  /** The step was skipped: its `when` is not true. */
  skip(): void;
  /** Secret values that were extracted from an answer. */
  read(secrets: readonly string[]): void;
}

export interface ConfigFinding {
  readonly path: readonly (string | number)[];
  /** `key`: the key itself is wrong; otherwise its value. */
  readonly at?: "key" | "value" | undefined;
  readonly message: string;
}

/** The parts of a strategy that a login's `check` can use. */
export interface CheckedStrategy {
  readonly fieldKeys: readonly string[];
  /** Null: the type is invalid. */
  readonly fieldTypes: ReadonlyMap<string, string | null>;
  readonly hosts: readonly string[];
}

export interface LoginType {
  readonly type: string;
  readonly description: string;
  /** The keys of `login` besides `type` and `cache` (`additionalProperties: false`), annotated as node schemas are. */
  readonly schema: TObject;
  /**
   * The login manages the lifetime of its tokens: a `cache` in the document is refused, and after a 401 during a run a new
   * session is requested (`LoginContext.refused`).
   */
  readonly keepsItsOwnSession?: true;
  /** Mistakes that the schema can't express, e.g. a field key that the strategy doesn't have. */
  check?(config: JsonObject, strategy: CheckedStrategy): readonly ConfigFinding[];
  /** Warnings about a valid config, which are shown although the document is applied. `isCached`: the strategy has a `cache`. */
  warn?(config: JsonObject, isCached: boolean): readonly ConfigFinding[];
  /**
   * Problems with an end user's input beyond the checks of the fields themselves: one sentence per field, by its key, which never
   * quotes the input.
   */
  checkSubmitted?(config: JsonObject, values: ReadonlyMap<string, string>): ReadonlyMap<string, FormIssue>;
  /** Why a login with this config can't be tried when it is submitted (`verify`), and the remedy; null, or no function: it can. */
  explainUntried?(config: JsonObject): string | null;
  /** Origins besides the strategy's `hosts` that receive parts of the credential. */
  sendsTo?(config: JsonObject): readonly string[];
  /** Names that the steps extract, which are variables in later templates. */
  extracts?(config: JsonObject): readonly string[];
  /** Variables of the templates in `session`, which exist once the steps are done. */
  readonly sessionVariables?: readonly string[];
  /** Throws LoginFailure when the target refuses, OutboundError when it can't be reached. */
  login(context: LoginContext, config: JsonObject): Promise<LoginSession>;
  /**
   * Tests a cached session; `context.send` adds its cookies and headers. Throws LoginFailure if it is no longer logged in,
   * OutboundError if the target can't be reached. A type without this function, or a config without a `check`, can't test
   * sessions.
   */
  checkSession?(context: LoginContext, config: JsonObject): Promise<void>;
}

export function defineLogin(type: LoginType): LoginType {
  return type;
}

/** The target refused the login, or did not behave as the strategy describes. The message names the step and never a value. */
export class LoginFailure extends Error {
  override readonly name = "LoginFailure";
  /** Whether the target received the credential and rejected it: another attempt would count against the end user's account there. */
  readonly rejected: boolean;
  /** Why the run fails, if it is something else than a failed login. */
  readonly kind: RunErrorKind;
  /** What the page of a browser showed; null: it was not looked at. */
  readonly evidence: NewEvidence | null;

  constructor(
    message: string,
    {
      rejected = false,
      kind = "login",
      evidence = null,
    }: {
      readonly rejected?: boolean;
      readonly kind?: RunErrorKind | undefined;
      readonly evidence?: NewEvidence | null;
    } = {},
  ) {
    super(message);
    this.rejected = rejected;
    this.kind = kind;
    this.evidence = evidence;
  }
}
