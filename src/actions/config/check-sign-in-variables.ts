import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { isSecretField } from "#domain/strategy.ts";
import type { LocatedUse } from "./read-expressions.ts";

/** Keys that are only sent to the token endpoint, in a request's body or headers. */
const NOT_IN_A_URL: ReadonlySet<string> = new Set(["client_secret"]);

/**
 * docs/decisions/0014: no secret in a URL. Parameters in the URL of the target's own login are visible in browsers, histories and
 * logs. With the other grants, parameters are sent in a body, but endpoints are still URLs.
 */
export function checkSignInVariables(
  uses: readonly LocatedUse[],
  { fields, login }: JsonObject,
): readonly ConfigFinding[] {
  const list: readonly Json[] = Array.isArray(fields) ? fields : [];
  const secrets = list.flatMap((field) =>
    isJsonObject(field) && isSecretField(field) ? [field["key"]] : [],
  );
  const grant = isJsonObject(login) ? login["grant"] : undefined;
  const leaves = grant === undefined || grant === "authorization_code";
  return uses.flatMap(({ name, parts: [key = ""], path }) => {
    const at = String(path[1]);
    const isInBody = NOT_IN_A_URL.has(at) || (!leaves && ["extra_params", "client_id"].includes(at));
    if (name !== "credential" || isInBody || !secrets.includes(key)) return [];
    const message = `the secret field ${quote(key)} would become part of a URL; use a field with \`secret: false\``;
    return [{ path, message }];
  });
}
