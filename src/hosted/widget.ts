import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import type { FastifyReply, FastifyRequest } from "fastify";
import { compress, squeeze } from "./assets.ts";

/**
 * The widget as customers' pages load it: the same bytes on every installation of this version. A plain script, in a block of
 * its own, so that it adds one name to a page and no more.
 */
const WIDGET = `"use strict";{\n${squeeze(
  stripTypeScriptTypes(readFileSync(new URL("browser/latchkey.ts", import.meta.url), "utf8")),
)}\n}\n`;

/** For the `integrity` attribute (Subresource Integrity). */
export const WIDGET_INTEGRITY = `sha384-${createHash("sha384").update(WIDGET).digest("base64")}`;

const MAX_AGE_SECONDS = 3_600;

/** Anybody's page may load it, also one that isolates itself; it holds nothing of a session. */
export async function sendWidget(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { bytes, encoding } = compress("latchkey.js", WIDGET, request.headers["accept-encoding"]);
  if (encoding !== null) reply.header("Content-Encoding", encoding);
  return await reply
    .headers({
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
      Vary: "Accept-Encoding",
      ETag: `"${WIDGET_INTEGRITY}${encoding ?? ""}"`,
      "Access-Control-Allow-Origin": "*",
      "Cross-Origin-Resource-Policy": "cross-origin",
      "X-Content-Type-Options": "nosniff",
    })
    .type("text/javascript; charset=utf-8")
    .send(bytes);
}
