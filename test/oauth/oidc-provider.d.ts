/** The part of the package that the tests use; it comes without types. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  interface Context {
    readonly oidc: { readonly params?: Readonly<Record<string, string | undefined>> };
  }
  interface AccessToken {
    readonly accountId?: string;
    readonly clientId?: string;
    readonly grantId: string;
    readonly isValid: boolean;
    readonly scope?: string;
  }
  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
    on(event: string, listener: (context: Context, error?: Error) => void): this;
    readonly AccessToken: { find(token: string): Promise<AccessToken | undefined> };
    readonly RefreshToken: { revokeByGrantId(grantId: string): Promise<void> };
    readonly ClientCredentials: { find(token: string): Promise<AccessToken | undefined> };
  }
}
