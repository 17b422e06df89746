import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import type { FastifyReply, FastifyRequest } from "fastify";
import { lazy } from "#lib/lazy.ts";
import { compress, squeeze } from "./assets.ts";

/**
 * The widget as customers' pages load it: the same bytes on every installation of this version. A plain script inside a block, so
 * that it adds only one name to a page.
 */
const widget = lazy(() => {
  const source = readFileSync(new URL("browser/latchkey.ts", import.meta.url), "utf8");
  return `"use strict";{\n${squeeze(stripTypeScriptTypes(source))}\n}\n`;
});

/** For the `integrity` attribute (Subresource Integrity). */
export const widgetIntegrity = lazy(() => `sha384-${createHash("sha384").update(widget()).digest("base64")}`);

const MAX_AGE_SECONDS = 3_600;

/** Any page may load it, even a cross-origin isolated one; it contains nothing of a session. */
export async function sendWidget(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { bytes, encoding } = compress("latchkey.js", widget(), request.headers["accept-encoding"]);
  if (encoding !== null) reply.header("Content-Encoding", encoding);
  return await reply
    .headers({
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
      Vary: "Accept-Encoding",
      ETag: `"${widgetIntegrity()}${encoding ?? ""}"`,
      "Access-Control-Allow-Origin": "*",
      "Cross-Origin-Resource-Policy": "cross-origin",
      "X-Content-Type-Options": "nosniff",
    })
    .type("text/javascript; charset=utf-8")
    .send(bytes);
}
