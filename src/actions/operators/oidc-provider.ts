import * as oauth from "oauth4webapi";
import { limits } from "#domain/limits.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { Gate } from "#outbound/gate.ts";
import { throughGate, type GateOptions } from "#strategies/oauth/oauth-transport.ts";

/** A failed sign-in at the provider. The message is for the log and contains nothing that was sent. */
export class OidcError extends Error {
  override readonly name = "OidcError";
  /** `unavailable`: it can't be reached; `denied`: it, or the person, refused; `failed`: its answer is invalid. */
  readonly kind: "unavailable" | "denied" | "failed";

  constructor(kind: OidcError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface OidcClient {
  readonly issuer: URL;
  readonly clientId: string;
  /** null: a public client, protected only by PKCE. */
  readonly clientSecret: Secret | null;
  readonly scopes: string;
}

/** One authorization request and its callback. */
export interface OidcFlow {
  readonly redirectUri: string;
  readonly state: string;
  readonly verifier: string;
  readonly nonce: string;
  /** Whether the provider must authenticate the person again, even within its own session. */
  readonly fresh: boolean;
}

/** The person's identity according to the provider. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** When the provider last authenticated the person; null: unknown. */
  readonly askedAtMs: number | null;
  /** An email address that the provider has verified; null: none. Throws OidcError. */
  verifiedEmail(): Promise<string | null>;
}

interface Found {
  readonly server: oauth.AuthorizationServer;
  readonly options: GateOptions;
  readonly atMs: number;
}

const SECONDS_MS = 1_000;

/** The operators' provider, as OpenID Connect: code flow with PKCE, `state`, `nonce`, `iss`, and the signature of the ID token. */
export class OidcProvider {
  readonly #settings: OidcClient;
  readonly #gate: Gate;
  readonly #log: Log;
  #found: Found | null = null;

  constructor(settings: OidcClient, gate: Gate, log: Log) {
    this.#settings = settings;
    this.#gate = gate;
    this.#log = log;
  }

  /** The authorization URL. Throws OidcError. */
  async authorizationUrl(flow: OidcFlow): Promise<string> {
    const { clientId, scopes } = this.#settings;
    const { server } = await this.#find();
    const url = new URL(server.authorization_endpoint ?? "");
    const parameters: Readonly<Record<string, string>> = {
      response_type: "code",
      client_id: clientId,
      redirect_uri: flow.redirectUri,
      scope: scopes,
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: "S256",
      ...(flow.fresh && { prompt: "login", max_age: "0" }),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** The person who returned. Throws OidcError. */
  async callback(answer: URLSearchParams, flow: OidcFlow): Promise<OidcIdentity> {
    const { server, options } = await this.#find();
    const client: oauth.Client = { client_id: this.#settings.clientId };
    return await this.#asOidcError("the answer", async () => {
      // RFC 9207 and `state`; the code is one text, given once.
      const checked = oauth.validateAuthResponse(server, client, answer, flow.state);
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        this.#authentication(server),
        checked,
        flow.redirectUri,
        flow.verifier,
        options,
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: flow.nonce,
        requireIdToken: true,
        // RFC 9470 and OpenID Connect Core 3.1.2.1: after a forced authentication `auth_time` is required.
        ...(flow.fresh && { maxAge: limits.operatorStepUpMs / SECONDS_MS }),
      });
      await oauth.validateApplicationLevelSignature(server, response, options);
      const claims = oauth.getValidatedIdTokenClaims(tokens);
      if (!claims) throw new OidcError("failed", "the provider returned no ID token");
      if (claims.sub.length > SUBJECT_CHARACTERS_MAX)
        throw new OidcError("failed", "the provider's subject is longer than 255 characters");
      return {
        issuer: claims.iss,
        subject: claims.sub,
        askedAtMs: claims.auth_time === undefined ? null : claims.auth_time * SECONDS_MS,
        verifiedEmail: async () =>
          emailOf(claims) ??
          (await this.#asOidcError("the user info", async () => {
            // In the ID token or in the user info.
            if (server.userinfo_endpoint === undefined || claims["email"] !== undefined) return null;
            const info = await oauth.userInfoRequest(server, client, tokens.access_token, options);
            return emailOf(await oauth.processUserInfoResponse(server, client, claims.sub, info));
          })),
      };
    });
  }

  #authentication(server: oauth.AuthorizationServer): oauth.ClientAuth {
    const { clientSecret } = this.#settings;
    if (clientSecret === null) return oauth.None();
    const taken = server.token_endpoint_auth_methods_supported;
    // RFC 8414: the default is `client_secret_basic`.
    return taken === undefined || taken.includes("client_secret_basic")
      ? oauth.ClientSecretBasic(clientSecret.reveal())
      : oauth.ClientSecretPost(clientSecret.reveal());
  }

  /** The provider's metadata, refreshed after some minutes: endpoints move, and keys are cached with the object. */
  async #find(): Promise<Found> {
    const kept = this.#found;
    if (kept && performance.now() - kept.atMs < limits.oauthMetadataMs) return kept;
    const { issuer } = this.#settings;
    const insecure = issuer.protocol === "http:";
    this.#found = await this.#asOidcError("the discovery document", async () => {
      const discovery = this.#through([issuer.origin], insecure);
      const response = await oauth.discoveryRequest(issuer, { algorithm: "oidc", ...discovery });
      const server = await oauth.processDiscoveryResponse(issuer, response);
      // The operator trusts the issuer and everything it names: its keys and endpoints may be on other hosts.
      const options = this.#through(endpointsOf(server, insecure), insecure);
      return { server, options, atMs: performance.now() };
    });
    return this.#found;
  }

  #through(origins: readonly string[], insecure: boolean): GateOptions {
    const send: Parameters<typeof throughGate>[0]["send"] = async (request, allowed) => {
      const { method, url, headers = [], body } = request;
      const policy = {
        origins: allowed,
        redirectsMax: 0,
        maxBytes: limits.oauthResponseBytesMax,
        timeoutMs: limits.oidcRequestMs,
      };
      try {
        return await this.#gate.send(
          { method, url: new URL(url), headers, body },
          policy,
          new AbortController().signal,
        );
      } catch (error) {
        if (error instanceof GateError) throw new OidcError("unavailable", error.message);
        throw error;
      }
    };
    return throughGate({ send }, origins, insecure);
  }

  /** The error without sent or received data, which the library's errors contain. */
  async #asOidcError<T>(what: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const known = error instanceof OidcError ? error : toOidcError(what, error);
      this.#log.warn({ issuer: this.#settings.issuer.href, detail: known.message }, "single sign-on failed");
      throw known;
    }
  }
}

const SUBJECT_CHARACTERS_MAX = 255;

function emailOf(claims: Readonly<Record<string, unknown>>): string | null {
  const { email, email_verified: isVerified } = claims;
  return typeof email === "string" && isVerified === true ? email : null;
}

/** The origins of the endpoints. Throws OidcError when one is missing or not https. */
function endpointsOf(server: oauth.AuthorizationServer, insecure: boolean): readonly string[] {
  const originOf = (name: string, url: string | undefined): string => {
    if (url === undefined || !URL.canParse(url)) throw new OidcError("failed", `the provider has no ${name}`);
    const { protocol, origin } = new URL(url);
    if (protocol !== "https:" && !insecure)
      throw new OidcError("failed", `the provider's ${name} does not use https`);
    return origin;
  };
  const methods = server.code_challenge_methods_supported;
  if (methods !== undefined && !methods.includes("S256"))
    throw new OidcError("failed", "the provider does not support PKCE with S256");
  originOf("authorization_endpoint", server.authorization_endpoint);
  return [
    originOf("token_endpoint", server.token_endpoint),
    originOf("jwks_uri", server.jwks_uri),
    ...(server.userinfo_endpoint === undefined
      ? []
      : [originOf("userinfo_endpoint", server.userinfo_endpoint)]),
  ];
}

/** An error's name by RFC 6749, when it looks like one. */
const nameOf = (error: string): string => (/^[A-Za-z0-9_.-]{1,60}$/.test(error) ? error : "an error");

function toOidcError(what: string, error: unknown): OidcError {
  if (error instanceof oauth.AuthorizationResponseError)
    return new OidcError("denied", `the provider answered ${nameOf(error.error)}`);
  if (error instanceof oauth.ResponseBodyError)
    return new OidcError("failed", `the provider answered ${error.status}, ${nameOf(error.error)}`);
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  const reason = typeof code === "string" ? code : "no code";
  // A temporary failure of the provider.
  if (cause instanceof Response && cause.status >= 500)
    return new OidcError("unavailable", `${what} of the provider has status ${cause.status}`);
  return new OidcError("failed", `${what} of the provider can't be used (${reason})`);
}
