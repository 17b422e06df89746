import { originProblem, secretReference } from "#domain/account-secret.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";
import { writtenOrigin } from "#strategies/oauth/oauth-url.ts";

/** The origins that each secret may reach, by `<account>/<name>`. */
export type KnownSecrets = ReadonlyMap<string, readonly string[]>;

/** Where the client's secret would be sent, as far as the document says it: the token endpoint's origin, or the issuer's. */
export function tokenOrigin({ token_url: url, issuer }: JsonObject): string | null {
  const written = url ?? issuer;
  return typeof written === "string" ? writtenOrigin(written) : null;
}

/**
 * Where a strategy from before account secrets can send its client's secret: the origins that its login names, and where only the
 * metadata of an issuer say which the token endpoint is, its hosts.
 */
export function namedOrigins({ login, hosts }: Pick<Strategy, "login" | "hosts">): readonly string[] {
  const { token_url: url, issuer } = login;
  const written = (value: Json | undefined): readonly string[] => {
    const origin = typeof value === "string" ? writtenOrigin(value) : null;
    return origin === null ? [] : [origin];
  };
  const found = [...written(url), ...written(issuer), ...(url === undefined ? hosts : [])];
  return [...new Set(found)].filter((origin) => originProblem(origin) === null);
}

/** A secret is sent to its own origins and nowhere else. One that nobody has given yet is no mistake of the document. */
export function checkClientSecret(
  { login }: JsonObject,
  account: string,
  known: KnownSecrets,
): readonly ConfigFinding[] {
  if (!isJsonObject(login) || login["type"] !== "oauth2") return [];
  const reference = secretReference(login);
  const origin = tokenOrigin(login);
  if (reference?.kind !== "secret" || origin === null) return [];
  const { name } = reference;
  const origins = known.get(`${account}/${name}`);
  if (origins === undefined || origins.includes(origin)) return [];
  return [
    {
      path: ["login", "client_secret", "secret"],
      message:
        `the secret ${quote(name)} may not be sent to ${origin}, where the token endpoint is, only to ${origins.join(", ")}; ` +
        `correct \`token_url\`, or allow it with the value: latchkey secrets set --account ${account} ${name} --for ${origin}`,
    },
  ];
}
