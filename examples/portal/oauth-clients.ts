export interface OAuthClient {
  readonly id: string;
  readonly name: string;
  readonly secret: string;
  readonly redirectUris: readonly string[];
}

/** Published, as the accounts are: it opens nothing but this portal, which listens on loopback only. */
export const OAUTH_CLIENTS: readonly OAuthClient[] = [
  {
    id: "latchkey-demo",
    name: "Acme Inc.",
    secret: "northwind-demo-client-secret-41c9a7",
    redirectUris: [
      "http://127.0.0.1/connect/oauth/acme/strat_northwind_bank",
      "http://localhost/connect/oauth/acme/strat_northwind_bank",
    ],
  },
];

/** RFC 8252, 7.3: on loopback the port is free, everything else is compared letter by letter. */
export function isRegistered(client: OAuthClient, redirectUri: string): boolean {
  if (!URL.canParse(redirectUri)) return false;
  const url = new URL(redirectUri);
  const withoutPort = redirectUri.replace(`//${url.host}/`, `//${url.hostname}/`);
  return client.redirectUris.includes(withoutPort);
}
