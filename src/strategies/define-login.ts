import type { TObject } from "typebox";
import type { BoundExpressions } from "#domain/expression.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";

/** What a login gives, and all that later requests need: secret, serialisable (it is sealed when it is cached). */
export interface LoginSession {
  /** Added to every request to the strategy's hosts. Lower-case names. */
  readonly headers: { readonly [name: string]: string };
  /** A serialised cookie jar, or null. */
  readonly cookies: JsonObject | null;
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
  /** The jar as it stands. */
  cookies(): JsonObject;
}

export interface ConfigFinding {
  readonly path: readonly (string | number)[];
  /** `key`: the key itself is wrong; otherwise its value is. */
  readonly at?: "key" | "value" | undefined;
  readonly message: string;
}

export interface LoginType {
  readonly type: string;
  readonly description: string;
  /** The keys of `login` besides `type` and `cache` (`additionalProperties: false`), annotated as node schemas are. */
  readonly schema: TObject;
  /** Mistakes that the schema can't express, e.g. a field key that the strategy doesn't have. */
  check?(config: JsonObject, strategy: { readonly fieldKeys: readonly string[] }): readonly ConfigFinding[];
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
}

export type { Json };
