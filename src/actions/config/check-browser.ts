import { listSteps } from "#answers/browser/check-steps.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import type { LocatedUrl } from "./check-request-urls.ts";
import type { LocatedUse } from "./read-expressions.ts";

/** Every `goto` of a browser login or node, also of its look-up. */
export function findGotoUrls(value: JsonObject, path: ConfigPath): readonly LocatedUrl[] {
  if (value["type"] !== "browser") return [];
  const verify = isJsonObject(value["verify"]) ? value["verify"]["steps"] : undefined;
  const steps = [
    ...listSteps(value["steps"], [...path, "steps"]),
    ...listSteps(verify, [...path, "verify", "steps"]),
  ];
  return steps.flatMap(({ step: { goto }, path: at }) =>
    typeof goto === "string" ? [{ path: [...at, "goto"], url: goto }] : [],
  );
}

/**
 * A secret of a browser login is set into a field and used nowhere else: in a locator, a URL or an option it would be part of what the
 * driver and the step log name.
 */
export function checkStepSecrets(
  login: JsonObject,
  uses: readonly LocatedUse[],
  isSecret: (field: string) => boolean,
): readonly ConfigFinding[] {
  if (login["type"] !== "browser") return [];
  return uses.flatMap(({ name, parts: [field], path }) => {
    const [, key] = path;
    if (name !== "credential" || key !== "steps") return [];
    const [kind, part] = path.slice(-2);
    if (part === "with" && (kind === "fill" || kind === "type")) return [];
    if (field !== undefined && !isSecret(field)) return [];
    const what = field === undefined ? "`$credential`" : `the secret field ${quote(field)}`;
    const message = `${what} may only be used in \`with\` of \`fill\` and \`type\`, not in a locator, a URL or an option`;
    return [{ path, message }];
  });
}
