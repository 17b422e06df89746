import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import { isTestTarget } from "#domain/test-mode.ts";

/** `hosts` of a strategy or a Blueprint without the test target: only documents that are derived for test mode reach it. */
export function checkLiveHosts({ hosts }: JsonObject): readonly ConfigFinding[] {
  if (!Array.isArray(hosts)) return [];
  return hosts.flatMap((host, index) => {
    if (typeof host !== "string" || !URL.canParse(host) || !isTestTarget(new URL(host))) return [];
    const message = `${quote(host)} is the target of test mode, which only runs of test keys reach; remove it, and use a key of \`latchkey keys create --test\``;
    return [{ path: ["hosts", index], message }];
  });
}
