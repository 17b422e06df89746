import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Needs } from "#actions/services.ts";
import { html } from "#lib/html.ts";

/** The address in the committed documents: the default address of a service. */
export const DOCUMENT_URL = "http://127.0.0.1:8080";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

interface Resource {
  readonly type: string;
  readonly text: string;
  readonly etag: string;
}

function makeResource(type: string, text: string): Resource {
  return { type, text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}

/** The page only needs its style sheet, its script and the icon. */
const HEADERS = {
  "Cache-Control": "public, max-age=300",
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

/**
 * docs/api.md#outside-apiv1: `GET /openapi.json` and `GET /docs`, outside `/api/v1`, without an API key or account data: what
 * `npm run generate` wrote, with the service's own address.
 */
export function registerReference(app: FastifyInstance, services: Needs<"publicUrl">): void {
  const style = makeResource("text/css; charset=utf-8", read("./reference.css"));
  const script = makeResource("text/javascript; charset=utf-8", read("../../openapi/reference.js"));
  // Created at the first request, because the address may not be known before the service listens.
  let made: { readonly document: Resource; readonly page: Resource } | null = null;
  const make = (): { readonly document: Resource; readonly page: Resource } => {
    const publicUrl = services.publicUrl();
    const withAddress = (file: string, address: string): string =>
      read(`../../openapi/${file}`).replaceAll(DOCUMENT_URL, () => address);
    const inJson = JSON.stringify(publicUrl).slice(1, -1);
    const inHtml = html`${publicUrl}`.toString();
    return {
      document: makeResource("application/json; charset=utf-8", withAddress("openapi.json", inJson)),
      page: makeResource("text/html; charset=utf-8", withAddress("reference.html", inHtml)),
    };
  };
  const serve = (url: string, resource: () => Resource): void => {
    app.route({
      method: ["GET", "HEAD"],
      url,
      handler: async (request, reply) => await sendResource(request, reply, resource()),
    });
  };
  serve("/openapi.json", () => (made ??= make()).document);
  serve("/docs", () => (made ??= make()).page);
  serve("/docs/style.css", () => style);
  serve("/docs/script.js", () => script);
}

async function sendResource(
  request: FastifyRequest,
  reply: FastifyReply,
  resource: Resource,
): Promise<FastifyReply> {
  reply.headers({ ...HEADERS, ETag: resource.etag });
  const known = (request.headers["if-none-match"] ?? "")
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(resource.etag) || known.includes("*")) return await reply.code(304).send();
  return await reply.type(resource.type).send(resource.text);
}
