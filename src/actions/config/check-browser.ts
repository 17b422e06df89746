import { listSteps } from "#answers/browser/check-steps.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { LocatedUrl } from "./check-request-urls.ts";
import type { LocatedUse } from "./read-expressions.ts";

/** Where a browser login or node has steps: its own, those of its look-up, and those of its check. */
const STEPS: readonly (readonly string[])[] = [["steps"], ["verify", "steps"], ["check", "steps"]];

const partAt = (value: JsonObject, place: readonly string[]): Json | undefined =>
  place.reduce<Json | undefined>((part, key) => (isJsonObject(part) ? part[key] : undefined), value);

/** Every `goto` of a browser login or node. */
export function findGotoUrls(value: JsonObject, path: ConfigPath): readonly LocatedUrl[] {
  if (value["type"] !== "browser") return [];
  const steps = STEPS.flatMap((place) => listSteps(partAt(value, place), [...path, ...place]));
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
    // The path begins with `login`.
    const isOfStep = STEPS.some((place) => place.every((key, index) => path[index + 1] === key));
    if (name !== "credential" || !isOfStep) return [];
    const [kind, part] = path.slice(-2);
    if (part === "with" && (kind === "fill" || kind === "type")) return [];
    if (field !== undefined && !isSecret(field)) return [];
    const what = field === undefined ? "`$credential`" : `the secret field ${quote(field)}`;
    const message = `${what} may only be used in \`with\` of \`fill\` and \`type\`, not in a locator, a URL or an option`;
    return [{ path, message }];
  });
}
