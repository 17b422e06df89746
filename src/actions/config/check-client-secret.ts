import { originProblem, secretReference } from "#domain/account-secret.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";
import { writtenOrigin } from "#strategies/oauth/oauth-url.ts";

/** The origins that each secret may reach, by `<account>/<name>`. */
export type KnownSecrets = ReadonlyMap<string, readonly string[]>;

/** Where the client's secret would be sent, if the document states it: the origin of the token endpoint or of the issuer. */
export function tokenOrigin({ token_url: url, issuer }: JsonObject): string | null {
  const written = url ?? issuer;
  return typeof written === "string" ? writtenOrigin(written) : null;
}

/**
 * The origins to which a strategy from before account secrets can send its client's secret: those in its login and, if the token
 * endpoint is only known from an issuer's metadata, its hosts.
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

/** A secret is only sent to its own origins. A secret that has not been set yet is not a mistake of the document. */
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
