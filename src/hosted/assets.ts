import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Target } from "#actions/sessions/embedded-flow.ts";
import { findLogo, findTargetLogo, logoOf } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import { logoName, type Logo } from "#domain/branding.ts";
import { lazy } from "#lib/lazy.ts";
import { accentSheet, themedAccentSheet } from "./accent.ts";

/** The files that are the same for every visitor. Built for the first page: a process that serves none needs no TypeScript compiler. */
const files = lazy((): ReadonlyMap<string, { readonly type: string; readonly text: string }> => {
  const style = squeezeSheet(readOwn("pages/style.css"));
  const testMode = squeezeSheet(readOwn("pages/test-mode.css"));
  // A frame is loaded before it is known whose session it shows, so it has the rules of test mode, too.
  const frame = `${squeezeSheet(readOwn("pages/frame.css"))}\n${testMode}\n${themesOf(style)}`;
  return new Map([
    ["style.css", { type: "text/css", text: style }],
    ["frame.css", { type: "text/css", text: frame }],
    ["test-mode.css", { type: "text/css", text: testMode }],
    ["form.js", { type: "text/javascript", text: readScript("browser/form.ts") }],
    ["frame.js", { type: "text/javascript", text: readScript("browser/frame.ts") }],
    ["frame-messages.js", { type: "text/javascript", text: readScript("browser/frame-messages.ts") }],
    ["checking.js", { type: "text/javascript", text: readScript("browser/checking.ts") }],
    ["opening.js", { type: "text/javascript", text: readScript("browser/opening.ts") }],
    ["closable.js", { type: "text/javascript", text: readScript("browser/closable.ts") }],
    ["window.js", { type: "text/javascript", text: readScript("browser/window.ts") }],
    // The decoder of QR codes is loaded only when a picture is selected.
    ["qr-decode.js", { type: "text/javascript", text: readPackage("qr/decode.js") }],
    ["index.js", { type: "text/javascript", text: readPackage("qr") }],
    ["icon.svg", { type: "image/svg+xml", text: readOwn("../../ui/icon.svg") }],
  ]);
});

const VERSION_CHARACTERS = 16;
/** A hash of all of them and of the computation of accent colours, so that a page requests the files of its own version. */
const filesVersion = lazy(() =>
  createHash("sha256")
    .update(JSON.stringify([...files(), themedAccentSheet("#3355ff"), themedAccentSheet("#ffee00")]))
    .digest("base64url")
    .slice(0, VERSION_CHARACTERS),
);

const IMMUTABLE = "public, max-age=31536000, immutable";
const ACCENT = /^(accent|themes)-([0-9a-f]{6})\.css$/;
const VERSION = /^[1-9]\d{0,8}$/;
const LOGO = /^([0-9a-f]{64})\.(?:png|jpg|webp)$/;

/** The path of a file on the pages; absolute, so that it works at every depth. */
export const assetPath = (base: string, name: string): string => `${base}/assets/${filesVersion()}/${name}`;
export const accentPath = (base: string, color: string): string =>
  assetPath(base, `accent-${color.slice(1)}.css`);
/** The same for frames, whose pages may select a colour scheme. */
export const themesPath = (base: string, color: string): string =>
  assetPath(base, `themes-${color.slice(1)}.css`);
export const logoPath = (base: string, logo: string): string => `${base}/logos/${logo}`;
export const targetLogoPath = (
  base: string,
  { accountSlug, session: { strategyId, strategyVersion }, strategy }: Target,
): string | null => {
  const logo = logoOf(strategy);
  return logo
    ? `${base}/logos/${encodeURIComponent(accountSlug)}/${encodeURIComponent(strategyId)}/${strategyVersion}/${logoName(logo)}`
    : null;
};

function readOwn(path: string): string {
  return readFileSync(new URL(path, import.meta.url), "utf8");
}

function readPackage(name: string): string {
  return readFileSync(new URL(import.meta.resolve(name)), "utf8");
}

function readScript(path: string): string {
  const script = stripTypeScriptTypes(readOwn(path))
    // Browsers don't resolve packages, so the decoder is a file next to this one.
    .replace('"qr/decode.js"', '"./qr-decode.js"')
    .replace(/(import|from) "\.\/([\w-]+)\.ts"/g, '$1 "./$2.js"');
  // Where a type was, there are as many spaces. No string in the files has two in a row.
  return squeeze(script).replace(/ {2,}([(),;]?)/g, (_spaces, next: string) => next || " ");
}

/** The colours of each scheme again, for a frame whose page has selected one. */
function themesOf(sheet: string): string {
  const [light = "", dark = ""] = [...sheet.matchAll(/:root\{([^}]*)\}/g)].map((match) => match[1]);
  const rule = (theme: string, colors: string): string =>
    `:root[data-theme="${theme}"]{${colors};color-scheme:${theme}}`;
  return rule("light", light) + rule("dark", dark);
}

/** Removes whole-line comments and indentation. No string in the files spans lines. */
export function squeeze(text: string): string {
  return text
    .replace(/^\s*\/\*[^]*?\*\/\s*$/gm, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("//"))
    .join("\n");
}

/** The same, and without what a style sheet does not need: spaces, line breaks, a block's last semicolon, the 0 of 0.5. */
function squeezeSheet(text: string): string {
  return squeeze(text)
    .replace(/^([\w-]+): /gm, "$1:")
    .replace(/ \{$/gm, "{")
    .replace(/(?<=[{};,])\n/g, "")
    .replace(/;(?=\})/g, "")
    .replace(/, /g, ",")
    .replace(/\b0(?=\.\d)/g, "");
}

/** Style sheets, scripts and customers' images: nothing of a session, so that any cache may store them. */
export function registerAssets(pages: FastifyInstance, services: Services): void {
  const route = { method: ["GET", "HEAD"] };
  pages.route({
    ...route,
    url: "/assets/:version/:name",
    handler: async (request, reply) => await sendAsset(request, reply),
  });
  for (const url of ["/logos/:name", "/logos/:account/:strategy/:version/:name"])
    pages.route({
      ...route,
      url,
      handler: async (request, reply) => await sendLogo(services, request, reply),
    });
}

async function sendAsset(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { version, name } = request.params as { version: string; name: string };
  const [, sheet, color] = ACCENT.exec(name) ?? [];
  const text = (sheet === "themes" ? themedAccentSheet : accentSheet)(`#${color}`);
  const file = color === undefined ? files().get(name) : { type: "text/css", text };
  if (file === undefined) return sendNotFound(reply);
  const { bytes, encoding } = compress(name, file.text, request.headers["accept-encoding"]);
  if (encoding !== null) reply.header("Content-Encoding", encoding);
  return await reply
    .headers({
      // While two versions of the service run, a page of one may request files from the other, which answers with its own, uncached.
      "Cache-Control": version === filesVersion() ? IMMUTABLE : "no-store",
      Vary: "Accept-Encoding",
      "X-Content-Type-Options": "nosniff",
      "Cross-Origin-Resource-Policy": "same-origin",
    })
    .type(`${file.type}; charset=utf-8`)
    .send(bytes);
}

function sendNotFound(reply: FastifyReply): FastifyReply {
  reply.callNotFound();
  return reply;
}

type Encoding = "br" | "gzip";
const compressed = new Map<string, Buffer>();

/** Compressed once. Accent style sheets are short and one per customer, so they are sent uncompressed. */
export function compress(
  name: string,
  text: string,
  accepted: string | undefined,
): { readonly bytes: Buffer; readonly encoding: Encoding | null } {
  const plain = Buffer.from(text, "utf8");
  const takes = (encoding: Encoding): boolean =>
    new RegExp(`(^|[,\\s])${encoding}($|[,;\\s])(?!\\s*q=0(\\.0*)?($|,))`).test(accepted ?? "");
  const encoding = (["br", "gzip"] as const).find(takes) ?? null;
  if (encoding === null || ACCENT.test(name)) return { bytes: plain, encoding: null };
  const key = `${encoding} ${name}`;
  const known = compressed.get(key);
  if (known) return { bytes: known, encoding };
  const bytes =
    encoding === "br"
      ? brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
      : gzipSync(plain, { level: 9 });
  compressed.set(key, bytes);
  return { bytes, encoding };
}

/** A customer's image, or that of a version of a strategy. */
async function findNamedLogo(
  services: Services,
  { account, strategy, version = "" }: Readonly<Record<string, string>>,
  sha256: Buffer,
): Promise<Logo | undefined> {
  if (account === undefined || strategy === undefined) return await findLogo(services, sha256);
  if (!VERSION.test(version)) return undefined;
  return await findTargetLogo(services, { account, strategy, version: Number(version) }, sha256);
}

async function sendLogo(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { name, ...target } = request.params as Readonly<Record<string, string>>;
  const sha256 = Buffer.from(LOGO.exec(name ?? "")?.[1] ?? "", "hex");
  const logo = sha256.length === 0 ? undefined : await findNamedLogo(services, target, sha256);
  if (!logo) return sendNotFound(reply);
  return await reply
    .headers({
      "Cache-Control": IMMUTABLE,
      "X-Content-Type-Options": "nosniff",
      "Cross-Origin-Resource-Policy": "same-origin",
      // Opened by itself, it is only an image.
      "Content-Security-Policy": "default-src 'none'; sandbox",
    })
    .type(logo.mediaType)
    .send(logo.content);
}
