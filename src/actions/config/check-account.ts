import { explainLogoUrl, explainSupportUrl } from "#domain/branding.ts";
import { THROTTLE_MS_MAX } from "#domain/host-throttle.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { parseDuration } from "#domain/duration.ts";
import type { ConfigFinding } from "#domain/config-problem.ts";
import { accountSchema, configLimits } from "#domain/config-schema.ts";
import { endpointUrlProblem } from "#domain/webhook.ts";
import { canonicalUrl } from "#domain/webhook-documents.ts";
import { checkShape } from "./check-shape.ts";
import { checkDuration, checkOrigins, readOrigins } from "./check-values.ts";

/** docs/accounts.md describes account documents. */
export function checkAccount(document: JsonObject): readonly ConfigFinding[] {
  return [
    ...checkShape(accountSchema, document, []),
    ...checkOrigins(document["allowed_origins"], ["allowed_origins"]),
    ...checkOrigins(document["embed_origins"], ["embed_origins"]),
    ...checkDuration(document["session_lifetime"], ["session_lifetime"], {
      maxMs: configLimits.sessionLifetimeMsMax,
    }),
    ...checkDuration(document["retention"], ["retention"], { maxMs: configLimits.retentionMsMax }),
    ...checkBranding(document),
    ...checkThrottles(document),
    ...checkWebhooks(document),
  ];
}

function checkBranding({ branding }: JsonObject): readonly ConfigFinding[] {
  if (!isJsonObject(branding)) return [];
  const { logo_url: logo, support_url: support } = branding;
  const bad = explainLogoUrl(logo);
  const unfit = typeof support === "string" && support !== "" ? explainSupportUrl(support) : null;
  return [
    ...(bad === null ? [] : [{ path: ["branding", "logo_url"], message: bad }]),
    ...(unfit === null ? [] : [{ path: ["branding", "support_url"], message: unfit }]),
  ];
}

function checkThrottles({ throttle }: JsonObject): readonly ConfigFinding[] {
  if (!Array.isArray(throttle)) return [];
  const given = throttle.flatMap((each, index) => (isJsonObject(each) ? [{ each, index }] : []));
  const hosts = given.map(({ each: { host } }) => readOrigins([host ?? null])[0] ?? null);
  return given.flatMap(({ each: { host, per }, index }, at) => {
    const path = ["throttle", index];
    const perMs = parseDuration(per ?? "");
    const isTwice = hosts[at] !== null && hosts.indexOf(hosts[at] ?? null) < at;
    return [
      ...checkOrigins([host ?? null], ["throttle"]).map((finding) => ({
        ...finding,
        path: [...path, "host"],
      })),
      ...(isTwice ? [{ path: [...path, "host"], message: "is listed twice; remove one" }] : []),
      ...(typeof per === "string" && (perMs === undefined || perMs === 0 || perMs > THROTTLE_MS_MAX)
        ? [{ path: [...path, "per"], message: "is a duration from 1ms to 1h, e.g. 1s" }]
        : []),
    ];
  });
}

function checkWebhooks({ webhooks }: JsonObject): readonly ConfigFinding[] {
  if (!Array.isArray(webhooks)) return [];
  const urls = webhooks.map((each) => (isJsonObject(each) ? each["url"] : undefined));
  return urls.flatMap((url, index) => {
    if (typeof url !== "string" || url === "") return [];
    const path = ["webhooks", index, "url"];
    const problem = endpointUrlProblem(url);
    if (problem !== null)
      return [{ path, message: problem.replace(/^The URL (of an endpoint )?/, "").replace(/\.$/, "") }];
    const isFirst = urls.findIndex((each) => canonicalUrl(each) === canonicalUrl(url)) === index;
    return isFirst ? [] : [{ path, message: "is listed twice; remove one" }];
  });
}
