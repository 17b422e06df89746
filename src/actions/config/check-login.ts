import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { quote, quoteList, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { commonLoginKeys, configLimits } from "#domain/config-schema.ts";
import { isSecretField } from "#domain/strategy.ts";
import { explainSecretUse, findSecretUses, secretFields } from "#expressions/secret-use.ts";
import type { LoginType } from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { checkStepSecrets, findGotoUrls } from "./check-browser.ts";
import { checkLoginVariables } from "./check-login-variables.ts";
import { checkSignInVariables } from "./check-sign-in-variables.ts";
import { checkCredentialUrls, findRequestUrls } from "./check-request-urls.ts";
import { checkDuration, checkOrigins, readOrigins, withoutSamePlace } from "./check-values.ts";
import { readExpressions } from "./read-expressions.ts";
import { checkTyped, ownKeys, withCommonKeys } from "./typed-config.ts";

const PATH = ["login"] as const;

/** Checks a strategy's `login`: its type, the type's keys, the names in its expressions, the destinations of its requests. */
export function checkLogin(login: JsonObject, strategy: JsonObject): readonly ConfigFinding[] {
  const { type } = login;
  const cache = checkDuration(login["cache"], [...PATH, "cache"], {
    maxMs: configLimits.cacheMsMax,
    zero: true,
  });
  const coolDown = isJsonObject(login["lockout"])
    ? checkDuration(login["lockout"]["cool_down"], [...PATH, "lockout", "cool_down"], {
        maxMs: configLimits.coolDownMsMax,
      })
    : [];
  const durations = [...cache, ...coolDown];
  const loginType = typeof type === "string" ? loginTypes.get(type) : undefined;
  if (loginType === undefined) return [...durations, explainType(type)];
  const fields = readFieldTypes(strategy["fields"]);
  const isWithoutFields = strategy["fields"] === undefined && type === "oauth2";
  const { uses, findings } = readExpressions(withCommonKeys(commonLoginKeys, loginType), login, PATH);
  const ofType = checkTyped(loginType, login, {
    common: commonLoginKeys,
    path: PATH,
    check: (config) =>
      loginType.check?.(config, {
        fieldKeys: [...fields.keys()],
        fieldTypes: fields,
        hosts: readOrigins(strategy["hosts"]),
      }) ?? [],
  });
  const ofRequests = [...findings, ...checkUrls(login, strategy["hosts"])];
  const ofVariables = [
    ...checkLoginVariables(uses, {
      fields: Array.isArray(strategy["fields"]) || isWithoutFields ? fields : null,
      extractedBefore: (path) => extractedBefore(loginType, login, path),
    }),
    ...(type === "oauth2" ? checkSignInVariables(uses, strategy) : []),
  ];
  return [
    ...durations,
    ...checkCacheFits(loginType, login),
    ...(type === "browser" ? checkOrigins(login["resources"], [...PATH, "resources"]) : []),
    ...ofType,
    ...withoutSamePlace(ofRequests, ofType),
    ...ofVariables,
    // A field that does not exist is not secret.
    ...withoutSamePlace(
      [
        ...checkSecretUses(loginType, login, strategy["fields"]),
        ...checkStepSecrets(login, uses, secretFields(readFields(strategy["fields"]))),
      ],
      ofVariables,
    ),
  ];
}

/** Expressions whose outcome would disclose something about a secret field, in the trace of a test login or in an error. */
function checkSecretUses(
  type: LoginType,
  login: JsonObject,
  fields: Json | undefined,
): readonly ConfigFinding[] {
  const uses = findSecretUses(type.schema, login, secretFields(readFields(fields)), PATH);
  return uses.map((use) => ({ path: use.path, message: explainSecretUse(use) }));
}

function readFields(fields: Json | undefined): readonly { readonly key: string; readonly secret: boolean }[] {
  const list: readonly Json[] = Array.isArray(fields) ? fields : [];
  return list.flatMap((field) =>
    isJsonObject(field) && typeof field["key"] === "string"
      ? [{ key: field["key"], secret: isSecretField(field) }]
      : [],
  );
}

function checkCacheFits(type: LoginType, login: JsonObject): readonly ConfigFinding[] {
  if (type.keepsItsOwnSession !== true || login["cache"] === undefined) return [];
  const message = `login type ${quote(type.type)} keeps its tokens while they are valid; remove \`cache\``;
  return [{ path: [...PATH, "cache"], at: "key", message }];
}

/** If a host can't be parsed, no URL can be checked against the hosts; the problem is reported at `hosts`. */
function checkUrls(login: JsonObject, hosts: Json | undefined): readonly ConfigFinding[] {
  const read = readOrigins(hosts);
  const isWhole = Array.isArray(hosts) && hosts.length > 0 && hosts.length === read.length;
  return isWhole
    ? checkCredentialUrls(
        [...findRequestUrls(login, PATH), ...findGotoUrls(login, PATH)],
        read,
        "this strategy",
      )
    : [];
}

function explainType(type: Json | undefined): ConfigFinding {
  const built = [...loginTypes.keys()];
  if (type === undefined)
    return { path: PATH, message: `the key \`type\` is missing; login types: ${quoteList(built)}` };
  const path = [...PATH, "type"];
  if (typeof type !== "string") return { path, message: `must be one of ${quoteList(built)}` };
  return { path, message: `unknown login type ${quote(type)}${suggestion(type, built, "there are")}` };
}

function readFieldTypes(fields: Json | undefined): ReadonlyMap<string, string | null> {
  const list: readonly Json[] = Array.isArray(fields) ? fields : [];
  return new Map(
    list.flatMap((field) => {
      if (!isJsonObject(field) || typeof field["key"] !== "string") return [];
      return [[field["key"], typeof field["type"] === "string" ? field["type"] : null] as const];
    }),
  );
}

/** Names that the steps before a place extract. The `check` of a cached login runs without any step. */
function extractedBefore(type: LoginType, login: JsonObject, path: ConfigPath): readonly string[] {
  const [key, step] = path.slice(PATH.length);
  if (key === "check") return [];
  if (key === "session" && type.sessionVariables !== undefined) return type.sessionVariables;
  const { steps } = login;
  if (key !== "steps" || typeof step !== "number" || !Array.isArray(steps)) return extractsOf(type, login);
  return extractsOf(type, { ...login, steps: steps.slice(0, step) });
}

/** `extracts` expects a login that satisfies its schema; for an invalid one it may fail. */
function extractsOf(type: LoginType, login: JsonObject): readonly string[] {
  try {
    return type.extracts?.(ownKeys(login, commonLoginKeys)) ?? [];
  } catch {
    return [];
  }
}
