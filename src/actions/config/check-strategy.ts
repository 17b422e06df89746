import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { quote, quoteList, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { fieldSchema, strategySchema, UNBUILT_FIELD_TYPES } from "#domain/config-schema.ts";
import { FIELD_TYPES } from "#domain/strategy.ts";
import { checkLogin } from "./check-login.ts";
import { checkShape } from "./check-shape.ts";
import { checkOrigins, checkPattern, checkUnique } from "./check-values.ts";

/** Design, page 3, "strategy". */
export function checkStrategy(document: JsonObject): readonly ConfigFinding[] {
  const { hosts, fields, login } = document;
  return [
    ...checkShape(strategySchema, document, []).filter(
      (finding) => finding.path[0] !== "login" || finding.path.length === 1,
    ),
    ...checkOrigins(hosts, ["hosts"]),
    ...checkHostsGiven(hosts, login),
    ...checkFields(fields),
    ...(isJsonObject(login) ? checkLogin(login, document) : []),
  ];
}

function checkHostsGiven(hosts: Json | undefined, login: Json | undefined): readonly ConfigFinding[] {
  // A credential that is only stored goes nowhere.
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
  if (typeof type === "string" && (UNBUILT_FIELD_TYPES as readonly string[]).includes(type)) {
    // The other keys are those of a field that nobody can read yet.
    const message = `field type ${quote(type)} is not built yet; built: ${quoteList(FIELD_TYPES)}`;
    return [
      ...shape.filter((finding) => finding.path.at(-1) === "key"),
      { path: [...path, "type"], message },
    ];
  }
  const isReversed = typeof fewest === "number" && typeof most === "number" && fewest > most;
  return [
    ...shape,
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
