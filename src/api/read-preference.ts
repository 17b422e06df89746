import type { FastifyRequest } from "fastify";

/**
 * RFC 7240, 2: preferences are separated by commas, over one or several headers; of two of a name the first counts. Gives the
 * value, "" if there is none or it is quoted, and undefined if the request has no such preference. Parameters are ignored.
 */
export function readPreference(request: FastifyRequest, wanted: string): string | undefined {
  // Most requests have none, and `headersDistinct` is made when it is first read.
  if (request.headers["prefer"] === undefined) return undefined;
  for (const header of request.raw.headersDistinct["prefer"] ?? [])
    // A comma or semicolon inside a quoted value is not a separator.
    for (const preference of header.replaceAll(/"(?:[^"\\]|\\.)*"?/g, "").split(",")) {
      const [name = "", value = ""] = (preference.split(";", 1)[0] ?? "").split("=", 2);
      if (name.trim().toLowerCase() === wanted) return value.trim();
    }
  return undefined;
}
