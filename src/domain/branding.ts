import { createHash } from "node:crypto";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { limits } from "./limits.ts";

/** The appearance of a customer on the pages that its end users see. */
export interface Branding {
  /** null: the account's name. */
  readonly name: string | null;
  /** `#rrggbb`, lower case. */
  readonly accentColor: string | null;
  /** `https:` or `mailto:`. */
  readonly supportUrl: string | null;
  /** The name of the image, which the service serves itself; null: none. */
  readonly logo: string | null;
}

/** The account's name, as its end users know it. */
export type Brand = Branding & {
  readonly name: string;
  /** Whether it is a test account's: its pages say so. */
  readonly isTest: boolean;
};

/** An image as it is stored and served. */
export interface Logo {
  readonly sha256: Buffer;
  readonly mediaType: LogoMediaType;
  readonly content: Buffer;
}

/** The first bytes of each accepted image type, so that an image is served with its real type. */
const LOGO_TYPES = {
  "image/png": { extension: "png", begins: /^\x89PNG\r\n\x1a\n/ },
  "image/jpeg": { extension: "jpg", begins: /^\xff\xd8\xff/ },
  "image/webp": { extension: "webp", begins: /^RIFF[^]{4}WEBP/ },
} as const;
export type LogoMediaType = keyof typeof LOGO_TYPES;

const SIGNATURE_BYTES = 16;
const DATA_URI = /^data:(image\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]+={0,2})$/;
const HOW =
  "embed the image itself: `data:image/png;base64,…` with the output of `base64 -w0 logo.png` (PNG, JPEG or WebP, at most 32 KiB)";

export type ReadLogo =
  | { readonly ok: true; readonly logo: Logo }
  /** For the operator, with the remedy. */
  | { readonly ok: false; readonly message: string };

/**
 * Reads a `logo_url`. It must be a `data:` URI: an image on another server would disclose to that server who connects to what and when, and
 * one that `apply` fetched would change without the document. The service serves the image itself.
 */
export function readLogoUrl(text: string): ReadLogo {
  if (/^https?:/i.test(text))
    return refuse(`an image on another server would let that server see every visitor; ${HOW}`);
  const [, mediaType = "", encoded = ""] = DATA_URI.exec(text.trim()) ?? [];
  if (mediaType === "") return refuse(`is not an image; ${HOW}`);
  const type = Object.entries(LOGO_TYPES).find(([name]) => name === mediaType);
  if (type === undefined) return refuse(`images of type \`${mediaType}\` are not supported; ${HOW}`);
  const content = Buffer.from(encoded, "base64");
  if (content.length > limits.logoBytesMax)
    return refuse(`has ${Math.ceil(content.length / 1_024)} KiB; the maximum is 32 KiB`);
  if (!type[1].begins.test(content.subarray(0, SIGNATURE_BYTES).toString("latin1")))
    return refuse(`claims to be \`${mediaType}\` but is not; ${HOW}`);
  const sha256 = createHash("sha256").update(content).digest();
  return { ok: true, logo: { sha256, mediaType: mediaType as LogoMediaType, content } };
}

/** The problem with a `logo_url`, or null. */
export function explainLogoUrl(logo: Json | undefined): string | null {
  const read = typeof logo === "string" && logo !== "" ? readLogoUrl(logo) : null;
  return read?.ok === false ? read.message : null;
}

/** The name under which the service serves an image: its hash, and its type. */
export const logoName = ({ sha256, mediaType }: Logo): string =>
  `${sha256.toString("hex")}.${LOGO_TYPES[mediaType].extension}`;

const refuse = (message: string): ReadLogo => ({ ok: false, message });

/** The problem with a `support_url`, or null. A page must use https: the end user is entering a password. */
export function explainSupportUrl(text: string): string | null {
  const says = "must be a web address that begins with https://, or mailto: and an email address";
  if (/[\s\\\p{Cc}]/u.test(text) || !URL.canParse(text)) return says;
  const { protocol, username, password, pathname } = new URL(text);
  if (protocol === "mailto:") return /^[^@?]+@[^@?]+$/.test(pathname) ? null : says;
  if (protocol !== "https:") return says;
  return username === "" && password === ""
    ? null
    : "must not contain a user name or a password; remove them";
}

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

/** Reads an account document that `apply` has checked. */
export function readBranding(document: JsonObject): Branding | null {
  const branding = document["branding"];
  if (!isJsonObject(branding)) return null;
  const logo = readLogo(document);
  return {
    name: text(branding["name"]),
    accentColor: text(branding["accent_color"])?.toLowerCase() ?? null,
    supportUrl: text(branding["support_url"]),
    logo: logo && logoName(logo),
  };
}

/** Reads an account document that `apply` has checked. */
export function readLogo(document: JsonObject): Logo | null {
  const branding = document["branding"];
  const url = isJsonObject(branding) ? text(branding["logo_url"]) : null;
  const read = url === null ? null : readLogoUrl(url);
  return read?.ok === true ? read.logo : null;
}
