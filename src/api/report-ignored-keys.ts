import type { FastifyReply, FastifyRequest } from "fastify";
import { limits } from "#domain/limits.ts";
import { readPreference } from "./read-preference.ts";

const PREFERENCE = "report-ignored-keys";

export const asksForIgnoredKeys = (request: FastifyRequest): boolean =>
  readPreference(request, PREFERENCE) === "";

/**
 * docs/api.md#triggers: silent, but for a caller that asks with `Prefer: report-ignored-keys`. RFC 7240, 3: the
 * answer says that the preference was honoured, also when no key was ignored.
 */
export function reportIgnoredKeys(
  request: FastifyRequest,
  reply: FastifyReply,
  keys: readonly string[],
): void {
  if (!asksForIgnoredKeys(request)) return;
  reply.header("Preference-Applied", PREFERENCE);
  if (keys.length > 0) reply.header("Ignored-Keys", writeKeys(keys));
}

/** Percent-encoded, so that no name can end the header or look like two names; an empty name is `""`. */
function writeKeys(keys: readonly string[]): string {
  let header = "";
  for (const key of keys.slice(0, limits.ignoredKeysMax)) {
    const cut = Array.from(key).slice(0, limits.ignoredKeyCharactersMax).join("");
    const item = key === "" ? '""' : encodeURIComponent(cut.toWellFormed());
    const longer = header === "" ? item : `${header}, ${item}`;
    if (longer.length > limits.ignoredKeysBytesMax) break;
    header = longer;
  }
  return header;
}
