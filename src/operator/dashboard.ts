import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "#actions/services.ts";
import { readDashboard } from "./dashboard-files.ts";

const PREFIX = "/dashboard";
const NONCE_BYTES = 16;
const RETRY_SECONDS = 5;

/**
 * Serves the dashboard's page and its files. The page calls `/operator/v1` like any other client, so nothing here requires a
 * sign-in.
 */
export function registerDashboard(app: FastifyInstance, services: Services): void {
  const method = ["GET", "HEAD"];
  app.route({ method, url: `${PREFIX}/assets/:name`, handler: sendAsset });
  const page = async (_request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    await sendPage(services, reply);
  // The URL that people enter first.
  app.route({
    method,
    url: "/",
    handler: async (_request, reply) =>
      await reply.header("Cache-Control", "no-store").redirect(`${publicPath(services)}${PREFIX}`, 302),
  });
  // Every path below belongs to a page, which the program in the browser selects.
  app.route({ method, url: PREFIX, handler: page });
  app.route({ method, url: `${PREFIX}/*`, handler: page });
}

/**
 * docs/decisions/0022. Only our own scripts, none inline. Only our own style sheets; those that Mantine and the editor create at
 * run time have the nonce of this answer. Pictures also from `data:`, for the logo in the preview of a strategy. No `style` attributes in markup, no other sites, no frames, no plug-ins.
 */
const contentSecurityPolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

const pageHeaders = (nonce: string): Readonly<Record<string, string>> => ({
  "Content-Security-Policy": contentSecurityPolicy(nonce),
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Strict-Transport-Security": "max-age=63072000",
  "X-Robots-Tag": "noindex",
});

/** The path below which a proxy serves the service; empty: none. */
const publicPath = (services: Services): string => new URL(services.publicUrl()).pathname.replace(/\/$/, "");

async function sendPage(services: Services, reply: FastifyReply): Promise<FastifyReply> {
  const build = await readDashboard();
  const nonce = randomBytes(NONCE_BYTES).toString("base64url");
  reply.headers(pageHeaders(nonce)).type("text/html; charset=utf-8");
  const path = publicPath(services);
  if (!build) {
    reply.code(503).header("Retry-After", `${RETRY_SECONDS}`);
    return await reply.send(NOT_BUILT.replace("__ICON__", `${path}/favicon.ico`));
  }
  return await reply.send(build.page.replaceAll("__NONCE__", nonce).replace("__BASE__", `${path}${PREFIX}/`));
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Latchkey: the dashboard is not built</title>
<link rel="icon" href="__ICON__">
<h1>The dashboard is not built</h1>
<p>Everything else works. Where Latchkey is installed, run:</p>
<pre>npm run build:ui</pre>
<p>Then load this page again; the service need not be started again.</p>
</html>
`;

const IMMUTABLE = "public, max-age=31536000, immutable";

async function sendAsset(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { name } = request.params as { name: string };
  const file = (await readDashboard())?.assets.get(name);
  reply.headers({
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    Vary: "Accept-Encoding",
  });
  if (!file) {
    // Requested by an older page after an upgrade: that page asks the operator to reload.
    const text = "Not found.\n";
    return await reply.code(404).header("Cache-Control", "no-store").type("text/plain").send(text);
  }
  const encoding = chooseEncoding(request.headers["accept-encoding"]);
  if (encoding !== null) reply.header("Content-Encoding", encoding);
  return await reply
    .header("Cache-Control", IMMUTABLE)
    .type(file.type)
    .send(file[encoding ?? "plain"]);
}

/** The best encoding that the browser accepts; `q=0` excludes one. */
function chooseEncoding(accepted: string | undefined): "br" | "gzip" | null {
  const taken = (accepted ?? "")
    .split(",")
    .map((each) => each.trim().toLowerCase())
    .filter((each) => !/;\s*q=0(\.0*)?$/.test(each))
    .map((each) => each.split(";")[0]?.trim());
  return (["br", "gzip"] as const).find((encoding) => taken.includes(encoding)) ?? null;
}
