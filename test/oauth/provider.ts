import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

export const CLIENT = { id: "latchkey-client", secret: "client-secret-canary-7Hq2vX9kLm4pRt8w" };

/** A request to the token endpoint as it ended. */
export interface TokenRequest {
  readonly grant: string;
  readonly ok: boolean;
  /** Everything that was sent in its body. */
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly error: string | null;
}

/** A real authorization server on loopback, with pages of its own for login and consent, and an API behind it. */
export interface ProviderSite extends AsyncDisposable {
  readonly issuer: string;
  /** `GET /api/items`, for access tokens of this server alone. */
  readonly api: string;
  /** Access tokens that the API took. */
  readonly used: readonly string[];
  /** Access tokens that the API takes no longer, whatever was said of their time; with `*` it takes none. */
  readonly forgotten: Set<string>;
  /** Takes back the refresh token that was given out with an access token. */
  takeBack(accessToken: string): Promise<void>;
  /** Seconds that access tokens are good for, from now on. */
  lifetime: { seconds: number };
  readonly tokenRequests: readonly TokenRequest[];
  readonly revoked: { count: number };
  /** Holds the next token request. */
  holdToken(): Hold;
  /** From now on the server knows our client, with these redirect URIs. */
  open(redirectUris: readonly string[]): void;
}

/** A token request that waits before the provider sees it. */
export interface Hold {
  readonly reached: Promise<void>;
  release(): void;
}

export interface ProviderOptions {
  /** Its name in the issuer: `localhost` is another site than the service's. */
  readonly host?: "127.0.0.1" | "localhost";
  /** What it says of people, by their login; nothing unless given. */
  readonly people?: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** Says them in the ID token too, and not only at the user info endpoint. */
  readonly inIdToken?: boolean;
}

export async function startProvider(options: ProviderOptions = {}): Promise<ProviderSite> {
  let provider: Provider | null = null;
  const tokenRequests: TokenRequest[] = [];
  const used: string[] = [];
  const revoked = { count: 0 };
  const forgotten = new Set<string>();
  const lifetime = { seconds: 3_600 };
  const held: { reached(): void; released: Promise<void> }[] = [];
  const server = createServer((request, response) => {
    const hold = request.url === "/token" ? held.shift() : undefined;
    hold?.reached();
    void (hold?.released ?? Promise.resolve()).then(() => {
      if (provider) provider.callback()(request, response);
      else response.writeHead(503).end();
    });
  });
  const api = createServer((request, response) => {
    const [, token = ""] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    const isForgotten = forgotten.has(token) || forgotten.has("*");
    void isValid(token).then((isValid) => {
      const isGood = isValid && !isForgotten;
      if (isGood) used.push(token);
      response.writeHead(isGood ? 200 : 401, { "content-type": "application/json" });
      response.end(JSON.stringify(isGood ? [{ item: "first" }, { item: "second" }] : {}));
    });
  });
  const isValid = async (token: string): Promise<boolean> => {
    const found =
      (await provider?.AccessToken.find(token)) ?? (await provider?.ClientCredentials.find(token));
    return found?.isValid === true;
  };
  const listen = async (each: typeof server): Promise<string> => {
    await new Promise<void>((resolve) => each.listen(0, "127.0.0.1", resolve));
    return `:${(each.address() as AddressInfo).port}`;
  };
  const issuer = `http://${options.host ?? "127.0.0.1"}${await listen(server)}`;
  const apiOrigin = `http://127.0.0.1${await listen(api)}`;
  return {
    issuer,
    api: apiOrigin,
    used,
    forgotten,
    lifetime,
    tokenRequests,
    revoked,
    takeBack: async (accessToken) => {
      const found = await provider?.AccessToken.find(accessToken);
      if (found) await provider?.RefreshToken.revokeByGrantId(found.grantId);
    },
    holdToken: () => {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      held.push({ reached: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
    open: (redirectUris) => {
      provider = new Provider(issuer, configurationOf(redirectUris, lifetime, options));
      const note =
        (ok: boolean) => (context: { oidc: { params?: TokenRequest["parameters"] } }, error?: Error) => {
          const parameters = { ...context.oidc.params };
          const name = (error as { error?: string } | undefined)?.error ?? null;
          tokenRequests.push({ grant: parameters["grant_type"] ?? "", ok, parameters, error: name });
        };
      provider.on("grant.success", note(true)).on("grant.error", note(false));
      provider.on("refresh_token.destroyed", () => (revoked.count += 1));
    },
    [Symbol.asyncDispose]: async () => {
      for (const each of [server, api]) {
        each.closeAllConnections();
        await new Promise((resolve) => each.close(resolve));
      }
    },
  };
}

function configurationOf(
  redirectUris: readonly string[],
  lifetime: { readonly seconds: number },
  { people, inIdToken = false }: ProviderOptions,
) {
  const client = {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    redirect_uris: redirectUris,
    grant_types: ["authorization_code", "refresh_token", "client_credentials"],
    response_types: ["code"],
  };
  return {
    clients: [client],
    scopes: ["openid", "offline_access", "items"],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    conformIdTokenClaims: !inIdToken,
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
    },
    // So that a code without a challenge can be had, to try whether it passes.
    pkce: { required: () => false },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: () => lifetime.seconds,
      ClientCredentials: () => lifetime.seconds,
      AuthorizationCode: 60,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 3_600,
      Interaction: 3_600,
      IdToken: 3_600,
    },
    cookies: { keys: ["a key of the tests"] },
    findAccount: (_context: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, ...people?.get(sub) }),
    }),
  };
}
