import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";

/** What the protocol may use, in the hosted pages as in a run. */
export interface OAuthAccess {
  /** With `$credential` bound. */
  readonly expressions: BoundExpressions;
  /** Sends to these origins and no other, through the egress gate. Throws OutboundError. */
  send(request: OutboundRequest, origins: readonly string[]): Promise<OutboundResponse>;
  /** What the client's secret is, which the document only refers to, and where it may be sent. */
  clientSecret(reference: SecretReference): Promise<FoundSecret>;
}

/** What a target has given out for a credential. Secret, serialisable: it is kept sealed. */
export interface TokenSet {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  /** Of the access token, by the database's clock; null: as far as anybody says it is good forever. */
  readonly expiresAtMs: number | null;
}

/** What a run's login has for it, besides what every login has. */
export interface OAuthLogin extends Omit<OAuthAccess, "expressions"> {
  /** The database's clock. */
  nowMs(): Promise<number>;
  /** The tokens that are kept for the credential. */
  tokens(): Promise<TokenSet | null>;
  /** Seals and commits them in place of those that `tokens` gave. Throws LoginFailure when others stand there meanwhile. */
  keep(tokens: TokenSet): Promise<void>;
}
