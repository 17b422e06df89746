import type { TObject } from "typebox";
import type { BoundExpressions } from "#domain/expression.ts";
import type { FormIssue } from "#domain/form-issue.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { DigestUser } from "./digest-auth.ts";
import type { OAuthLogin } from "./oauth/oauth-access.ts";

/** What a login gives, and all that later requests need: secret, serialisable (it is sealed when it is cached). */
export interface LoginSession {
  /** Added to every request to the strategy's hosts. Lower-case names. */
  readonly headers: { readonly [name: string]: string };
  /** Query parameters that are added to every request to the strategy's hosts, where only the target sees them. */
  readonly query?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Presented to the strategy's hosts when a connection is made. PEM. */
  readonly certificate?: { readonly certificate: string; readonly key: string } | undefined;
  /** What requests prove when the target asks for a digest: it is never sent itself. */
  readonly digest?: DigestUser | undefined;
  /** A serialised cookie jar, or null. */
  readonly cookies: JsonObject | null;
  /** What the login read in the target's answers. */
  readonly extracted?: ExtractedTexts | undefined;
  /** One-time codes that this login sent. */
  readonly codes?: readonly string[] | undefined;
}

/** Texts and numbers that a login extracted: those to be kept secret, and those of `secret: false`. */
export interface ExtractedTexts {
  readonly secret: readonly string[];
  readonly open: readonly string[];
}

/** What a login may use. Its requests reach the strategy's `hosts` and nothing else. */
export interface LoginContext {
  readonly strategy: Strategy;
  readonly signal: AbortSignal;
  /** The credential's field, or undefined when the end user left it empty. Only logins have this. */
  field(key: string): string | undefined;
  /** With `$credential` bound; scope variables carry what earlier steps extracted. Marks a one-time code as used when `$credential.<field>.code` is rendered. */
  readonly expressions: BoundExpressions;
  /** Sends with the jar's cookies, and keeps the cookies of the answer. */
  send(request: OutboundRequest): Promise<OutboundResponse>;
  /** Works with a context whose requests carry this session: its headers, parameters and certificate. */
  within<T>(session: LoginSession, work: (context: LoginContext) => Promise<T>): Promise<T>;
  /** Waits, and ends early with a throw when `signal` aborts. */
  sleep(ms: number): Promise<void>;
  /** The jar as it stands. */
  cookies(): JsonObject;
  /** What the target does not take any more, though it was good as far as anybody knew: another one is needed. */
  readonly refused?: LoginSession | undefined;
  /** Told of what a login of several steps does, where somebody wants to see it. */
  readonly steps?: LoginSteps | undefined;
  /** Token endpoints and kept tokens, for `oauth2`. */
  readonly oauth?: OAuthLogin | undefined;
}

/** How a login goes on, in the words of its document: never a rendered value. */
export interface LoginSteps {
  begin(step: string): void;
  /** Its `when` is not true. */
  skip(): void;
  /** What was extracted of an answer and is secret. */
  read(secrets: readonly string[]): void;
}

export interface ConfigFinding {
  readonly path: readonly (string | number)[];
  /** `key`: the key itself is wrong; otherwise its value is. */
  readonly at?: "key" | "value" | undefined;
  readonly message: string;
}

/** What a login's `check` may look at of its strategy. */
export interface CheckedStrategy {
  readonly fieldKeys: readonly string[];
  /** Null: the type can't be read. */
  readonly fieldTypes: ReadonlyMap<string, string | null>;
  readonly hosts: readonly string[];
}

export interface LoginType {
  readonly type: string;
  readonly description: string;
  /** The keys of `login` besides `type` and `cache` (`additionalProperties: false`), annotated as node schemas are. */
  readonly schema: TObject;
  /**
   * What it logs in with lives by its own rules: a `cache` in the document is refused, and a 401 in the middle of a run asks
   * for another session (`LoginContext.refused`).
   */
  readonly keepsItsOwnSession?: true;
  /** Mistakes that the schema can't express, e.g. a field key that the strategy doesn't have. */
  check?(config: JsonObject, strategy: CheckedStrategy): readonly ConfigFinding[];
  /** What a config without a mistake leaves to chance: shown, and applied all the same. `isCached`: the strategy has a `cache`. */
  warn?(config: JsonObject, isCached: boolean): readonly ConfigFinding[];
  /**
   * What is wrong with what an end user submitted, beyond what the fields themselves say: one sentence a field, by its key,
   * which never holds what was typed.
   */
  checkSubmitted?(config: JsonObject, values: ReadonlyMap<string, string>): ReadonlyMap<string, FormIssue>;
  /** Origins that it sends something of the credential to, beside the strategy's `hosts`. */
  sendsTo?(config: JsonObject): readonly string[];
  /** Names that the steps extract: they are variables of later templates. */
  extracts?(config: JsonObject): readonly string[];
  /** Throws LoginFailure when the target refuses, OutboundError when it can't be reached. */
  login(context: LoginContext, config: JsonObject): Promise<LoginSession>;
  /**
   * Tests a cached session; `context.send` adds its cookies and headers. Throws LoginFailure when it is not logged in any more,
   * OutboundError when the target can't be reached. A type without it, or a config without a `check`, can't tell.
   */
  checkSession?(context: LoginContext, config: JsonObject): Promise<void>;
}

export function defineLogin(type: LoginType): LoginType {
  return type;
}

/** The target refused the login (or did not behave as the strategy says). The message names the step, never a value. */
export class LoginFailure extends Error {
  override readonly name = "LoginFailure";
  /** The target got the credential and said no: another try counts against the end user's account there. */
  readonly rejected: boolean;

  constructor(message: string, { rejected = false }: { readonly rejected?: boolean } = {}) {
    super(message);
    this.rejected = rejected;
  }
}
