import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { canonicalJsonText, parseJsonText } from "#lib/json-text.ts";

/** The trigger of a document's schedule as it is stored: canonical JSON. */
export const triggerBytes = (trigger: JsonObject): Buffer =>
  Buffer.from(
    canonicalJsonText(
      parseJsonText(JSON.stringify(trigger), {
        depthMax: limits.dataDepthMax,
        valuesMax: limits.jsonValuesMax,
      }),
    ),
    "utf8",
  );
