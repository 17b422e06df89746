import type { CredentialSlot, MetadataItem } from "./blueprint.ts";
import type { JsonObject } from "./json.ts";
import { limits } from "./limits.ts";

/** JSON Schema (2020-12) of the keys that every trigger has. It accepts whatever `routeTrigger` and its checks accept. */

/** Like `isId("credential", …)`. */
const ID = "cred_[0-9A-Za-z]{20,40}";
const NO_NUL = String.raw`^[^\u0000]*$`;
/** A value that is not a string is stored as its JSON text. */
const NOT_NULL = ["string", "number", "boolean", "object", "array"] as const;

/** Ids separated by commas, as `readCredentialIds` splits them: spaces and empty items are allowed. */
const LIST = String.raw`^\s*(${ID}\s*)?(,\s*(${ID}\s*)?)*$`;
const ITEM = String.raw`^\s*(${ID}\s*)?$`;

export function credentialProperties(slots: readonly CredentialSlot[]): JsonObject {
  const forms = "one id, several ids separated by commas, or an array of ids";
  const wanted =
    slots.length === 0
      ? "This Blueprint needs none."
      : `This Blueprint needs one for each slot: ${slots.map(({ slot, strategyId }) => `${slot} (${strategyId})`).join(", ")}.`;
  const ids = { pattern: LIST, items: { type: "string", pattern: ITEM } };
  return {
    credential_id: {
      description: `The credentials that the run logs in with: ${forms}. ${wanted}`,
      type: ["string", "array", "null"],
      ...ids,
    },
    credential_ids: {
      description: "An alias of credential_id; if both are given, they are combined.",
      type: ["string", "array", "null"],
      ...ids,
    },
    run_name: {
      description: "The run's display name. A value that is not a string is converted to its JSON text.",
      maxLength: limits.nameCharactersMax,
      pattern: NO_NUL,
    },
  };
}

/** As many ids as there are slots, under either name or split between the two. */
export function credentialCounts(slots: readonly CredentialSlot[]): JsonObject {
  if (slots.length === 0) return {};
  const splits = slots.map((_, index) => index).concat(slots.length);
  return {
    anyOf: splits.map((first) => {
      const counts = { credential_id: first, credential_ids: slots.length - first };
      const named = Object.entries(counts).filter(([, count]) => count > 0);
      return {
        required: named.map(([name]) => name),
        properties: Object.fromEntries(named.map(([name, count]) => [name, atLeast(count)])),
      };
    }),
  };
}

function atLeast(count: number): JsonObject {
  return {
    type: ["string", "array"],
    pattern: `(${ID}[\\s,]*){${count}}`,
    contains: { type: "string", pattern: ID },
    minContains: count,
  };
}

export function metadataProperty(item: MetadataItem): JsonObject {
  return {
    ...(item.label === null ? {} : { title: item.label }),
    description:
      "Metadata: stored with the run as text. A value that is not a string is converted to its JSON text.",
    ...(item.required ? { type: [...NOT_NULL] } : {}),
    pattern: NO_NUL,
  };
}
