import { explainLogoUrl } from "#domain/branding.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { commonLoginKeys, fieldSchema, strategySchema } from "#domain/config-schema.ts";
import { loginTypes } from "#strategies/registry.ts";
import { checkLogin } from "./check-login.ts";
import { checkLiveHosts } from "./check-live-hosts.ts";
import { checkPlainHosts } from "./check-plain-hosts.ts";
import { checkShape } from "./check-shape.ts";
import { checkOrigins, checkPattern, checkUnique } from "./check-values.ts";
import { ownKeys } from "./typed-config.ts";

/** docs/strategies.md describes strategy documents. */
export function checkStrategy(document: JsonObject): readonly ConfigFinding[] {
  const { hosts, fields, login } = document;
  const bad = explainLogoUrl(document["logo_url"]);
  return [
    ...checkShape(strategySchema, document, []).filter(
      (finding) => finding.path[0] !== "login" || finding.path.length === 1,
    ),
    ...(bad === null ? [] : [{ path: ["logo_url"], message: bad }]),
    ...checkOrigins(hosts, ["hosts"]),
    ...checkPlainHosts(document),
    ...checkLiveHosts(document),
    ...checkHostsGiven(hosts, login),
    ...checkFieldsGiven(fields, login),
    ...checkFields(fields),
    ...(isJsonObject(login) ? checkLogin(login, document) : []),
    ...checkVerify(document),
  ];
}

function checkHostsGiven(hosts: Json | undefined, login: Json | undefined): readonly ConfigFinding[] {
  // A credential that is only stored is never sent.
  if (!isJsonObject(login) || login["type"] === "none") return [];
  if (hosts === undefined)
    return [
      { path: [], message: "the key `hosts` is missing; list the origins that may receive the credential" },
    ];
  const isEmpty = Array.isArray(hosts) && hosts.length === 0;
  return isEmpty
    ? [{ path: ["hosts"], message: "must not be empty; list the origins that may receive the credential" }]
    : [];
}

/** A login can be tried if it asks the target for something. */
function checkVerify({ verify, login }: JsonObject): readonly ConfigFinding[] {
  if (verify !== true || !isJsonObject(login) || typeof login["type"] !== "string") return [];
  const type = loginTypes.get(login["type"]);
  const message = type?.explainUntried?.(ownKeys(login, commonLoginKeys)) ?? null;
  return message === null ? [] : [{ path: ["verify"], message }];
}

/** There may be no fields, if the end user logs in at the target itself. */
function checkFieldsGiven(fields: Json | undefined, login: Json | undefined): readonly ConfigFinding[] {
  if (fields !== undefined || (isJsonObject(login) && login["type"] === "oauth2")) return [];
  return [{ path: [], message: "the key `fields` is missing (the fields of the hosted form); add it" }];
}

function checkFields(fields: Json | undefined): readonly ConfigFinding[] {
  const list: readonly Json[] = Array.isArray(fields) ? fields : [];
  const keys = list.flatMap((field, index) =>
    isJsonObject(field) && typeof field["key"] === "string"
      ? [{ name: field["key"], path: ["fields", index, "key"] }]
      : [],
  );
  return [
    ...list.flatMap((field, index) => checkField(field, ["fields", index])),
    ...checkUnique(keys, (key) => `another field has the key ${quote(key)} already; choose another one`),
  ];
}

function checkField(field: Json, path: ConfigPath): readonly ConfigFinding[] {
  const shape = checkShape(fieldSchema, field, path);
  if (!isJsonObject(field)) return shape;
  const { type, min_length: fewest = 0, max_length: most = limits.formValueBytesMax } = field;
  const isReversed = typeof fewest === "number" && typeof most === "number" && fewest > most;
  return [
    ...shape,
    ...checkKeysOfType(field, typeof type === "string" ? type : "", path),
    ...checkOptions(field["options"], type, path),
    ...checkPattern(field["pattern"], [...path, "pattern"]),
    ...(isReversed
      ? [
          {
            path: [...path, "min_length"],
            message: `is more than \`max_length\` (${most}); no value could fit`,
          },
        ]
      : []),
  ];
}

/** Keys that have no effect for a type are refused, so that nobody relies on them. */
const KEYS_WITHOUT_MEANING: ReadonlyMap<string, readonly string[]> = new Map([
  ["select", ["pattern", "min_length", "max_length"]],
  ["checkbox", ["pattern", "min_length", "max_length", "placeholder", "autocomplete"]],
  ["headers", ["pattern", "min_length", "max_length", "placeholder", "autocomplete"]],
  ["file", ["placeholder", "autocomplete"]],
]);

function checkKeysOfType(field: JsonObject, type: string, path: ConfigPath): readonly ConfigFinding[] {
  return (KEYS_WITHOUT_MEANING.get(type) ?? [])
    .filter((key) => field[key] !== undefined)
    .map((key) => ({
      path: [...path, key],
      at: "key" as const,
      message: `a field of type ${quote(type)} has no ${quote(key)}; remove it`,
    }));
}

function checkOptions(
  options: Json | undefined,
  type: Json | undefined,
  path: ConfigPath,
): readonly ConfigFinding[] {
  if (type !== "select") {
    const message = "only a field of type `select` has `options`; remove them, or change the type";
    return options === undefined ? [] : [{ path: [...path, "options"], at: "key", message }];
  }
  if (options === undefined)
    return [{ path, message: "a `select` needs its choices; add `options: [one, another]`" }];
  const values = (Array.isArray(options) ? options : []).flatMap((option: Json, index: number) => {
    const value = isJsonObject(option) ? option["value"] : option;
    return typeof value === "string" ? [{ name: value, path: [...path, "options", index] }] : [];
  });
  return checkUnique(values, (value) => `the choice ${quote(value)} is listed twice; remove one`);
}
