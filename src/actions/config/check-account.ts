import { explainLogoUrl, explainSupportUrl } from "#domain/branding.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import type { ConfigFinding } from "#domain/config-problem.ts";
import { accountSchema, configLimits } from "#domain/config-schema.ts";
import { endpointUrlProblem } from "#domain/webhook.ts";
import { canonicalUrl } from "#domain/webhook-documents.ts";
import { checkShape } from "./check-shape.ts";
import { checkDuration, checkOrigins } from "./check-values.ts";

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
