import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";

/** What the protocol may use, both in hosted pages and in runs. */
export interface OAuthAccess {
  /** With `$credential` bound. */
  readonly expressions: BoundExpressions;
  /** Sends only to these origins, through the egress gate. Throws OutboundError. */
  send(request: OutboundRequest, origins: readonly string[]): Promise<OutboundResponse>;
  /** Finds the client's secret, which the document only refers to, and where it may be sent. */
  clientSecret(reference: SecretReference): Promise<FoundSecret>;
}

/** The tokens that a target issued for a credential. Secret and serialisable: they are stored sealed. */
export interface TokenSet {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  /** When the access token expires, by the database's clock; null: no expiry is known. */
  readonly expiresAtMs: number | null;
}

/** What an OAuth login in a run has in addition to other logins. */
export interface OAuthLogin extends Omit<OAuthAccess, "expressions"> {
  /** The database's clock. */
  nowMs(): Promise<number>;
  /** The tokens that are stored for the credential. */
  tokens(): Promise<TokenSet | null>;
  /** Seals and commits them, replacing those that `tokens` returned. Throws LoginFailure if those have been replaced in the meantime. */
  keep(tokens: TokenSet): Promise<void>;
}
