import { explainLogoUrl, explainSupportUrl } from "#domain/branding.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import type { ConfigFinding } from "#domain/config-problem.ts";
import { accountSchema, configLimits } from "#domain/config-schema.ts";
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
