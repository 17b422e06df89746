import type { JsonObject } from "#domain/json.ts";
import type { ConfigFinding } from "#domain/config-problem.ts";
import { accountSchema, configLimits } from "#domain/config-schema.ts";
import { checkShape } from "./check-shape.ts";
import { checkDuration, checkOrigins } from "./check-values.ts";

/** Design, page 3, "account". */
export function checkAccount(document: JsonObject): readonly ConfigFinding[] {
  return [
    ...checkShape(accountSchema, document, []),
    ...checkOrigins(document["allowed_origins"], ["allowed_origins"]),
    ...checkDuration(document["session_lifetime"], ["session_lifetime"], {
      maxMs: configLimits.sessionLifetimeMsMax,
    }),
    ...checkDuration(document["retention"], ["retention"], { maxMs: configLimits.retentionMsMax }),
  ];
}
