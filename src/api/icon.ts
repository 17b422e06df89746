import { readFileSync } from "node:fs";
import type { FastifyInstance } from "fastify";

/** The mark of `ui/icon.svg` in 16, 32 and 48 pixels. */
const ICON = readFileSync(new URL("./favicon.ico", import.meta.url));
const MAX_AGE_SECONDS = 604_800;

/** The icon that browsers request automatically: for JSON, and for pages whose own icon they can't show. */
export function registerIcon(app: FastifyInstance): void {
  app.route({
    method: ["GET", "HEAD"],
    url: "/favicon.ico",
    handler: async (_request, reply) =>
      await reply
        .headers({
          "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
          "Cross-Origin-Resource-Policy": "same-origin",
          "X-Content-Type-Options": "nosniff",
        })
        .type("image/x-icon")
        .send(ICON),
  });
}
