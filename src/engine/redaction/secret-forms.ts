import { decodeEscapes } from "./decode-escapes.ts";

/** The patterns of `secret-search.ts`: for text and for decoded text, and the beginnings for base64 and hex. */
export interface SecretForms {
  readonly patterns: readonly Uint8Array[];
  readonly forms: readonly Uint8Array[];
}

/** Shorter ones can't start a search. */
const PATTERN_BYTES_MIN = 6;
const HEAD_CHARACTERS = 8;
const BACKSLASH = 0x5c;
const LOOSE_BYTES_MAX = 10;
/** Five bytes contain three that are a group, whatever the grouping by three. */
const PLAIN = /[0-9A-Za-z]{5,}/;

export function formsWithin(secret: string): SecretForms {
  const text = Buffer.from(secret, "utf8");
  const written = [text, ...inOtherAlphabets(secret)];
  const decoded = [...written, ...written.map(withoutLooseEnd)].map((bytes) =>
    withoutLooseEnd(decodeEscapes(bytes)?.bytes ?? bytes),
  );
  // Five bytes of each are enough to start from.
  const head = Array.from(secret.slice(0, 2 * HEAD_CHARACTERS))
    .slice(0, HEAD_CHARACTERS)
    .join("");
  // A secret that consists only of escapes decodes to too few bytes. It is found unchanged, and as common encoders escape it.
  const isLost = decoded.some((bytes) => bytes.length < PATTERN_BYTES_MIN);
  return {
    // A piece of base64 without beginning or end can't be decoded to the whole secret.
    patterns: different([
      ...written,
      ...decoded,
      ...base64Forms(text),
      ...(isLost ? escapedForms(secret) : []),
    ]),
    forms: different([
      ...written,
      ...escapedForms(head),
      ...plainPart(secret),
      ...encodedForms(Buffer.from(head, "utf8")),
    ]),
  };
}

/** In Latin-1 if possible, and in UTF-16 in both byte orders. */
function inOtherAlphabets(secret: string): readonly Buffer[] {
  const utf16 = Buffer.from(secret, "utf16le");
  const swapped = Buffer.from(utf16).swap16();
  return /[^\x00-\x7f]/.test(secret) && !/[^\x00-\xff]/.test(secret)
    ? [Buffer.from(secret, "latin1"), utf16, swapped]
    : [utf16, swapped];
}

/** An escape that begins at a secret's end would extend into the following text. */
function withoutLooseEnd(bytes: Uint8Array): Uint8Array {
  let end = bytes.length;
  while (bytes[end - 1] === BACKSLASH) end--;
  if (end === bytes.length) {
    const last = Buffer.from(bytes.subarray(-LOOSE_BYTES_MAX)).toString("latin1");
    end -= /(?:%[0-9A-Fa-f]?|&#?\w{0,8})$/.exec(last)?.[0].length ?? 0;
  }
  return end < PATTERN_BYTES_MIN ? bytes : bytes.subarray(0, end);
}

const plainPart = (secret: string): readonly Buffer[] => {
  const plain = PLAIN.exec(secret)?.[0];
  return plain === undefined ? [] : [Buffer.from(plain.slice(0, 5), "latin1")];
};

/** The secret as escaped by common encoders, and with each character escaped. */
function escapedForms(secret: string): readonly Buffer[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret.toWellFormed());
  const codes = Array.from(secret, (character) => character.codePointAt(0) ?? 0);
  const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");
  const bytes = Buffer.from(secret, "utf8").toString("hex").match(/../g) ?? [];
  return [
    json,
    json.replaceAll("/", "\\/"),
    json.replace(/[^ -~]|[<>&'+=]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`),
    url,
    url.replace(/[!'()*]/g, (character) => `%${hex(character.charCodeAt(0), 2).toUpperCase()}`),
    new URLSearchParams([["", secret]]).toString().slice(1),
    secret.replace(/[&<>"']/g, (character) => NAMED[character] ?? character),
    secret.replace(/[&<>"'`=/]/g, (character) => `&#x${hex(character.charCodeAt(0), 2).toUpperCase()};`),
    codes.map((code) => `\\u${hex(code, 4)}`).join(""),
    bytes.map((byte) => `\\x${byte}`).join(""),
    bytes.map((byte) => `%${byte}`).join(""),
    codes.map((code) => `&#x${hex(code, 2)};`).join(""),
    codes.map((code) => `&#${code};`).join(""),
  ].map((form) => Buffer.from(form, "utf8"));
}

const NAMED: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function base64Forms(bytes: Buffer): readonly Buffer[] {
  const base64 = [0, 1, 2].map((offset) => base64Within(bytes, offset));
  return [...base64, ...base64.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))].map((form) =>
    Buffer.from(form, "latin1"),
  );
}

function encodedForms(bytes: Buffer): readonly Buffer[] {
  const hex = bytes.toString("hex");
  return [
    ...base64Forms(bytes),
    ...[
      hex,
      hex.toUpperCase(),
      hex.replace(/..(?!$)/g, "$&:"),
      hex.toUpperCase().replace(/..(?!$)/g, "$&:"),
    ].map((form) => Buffer.from(form, "latin1")),
  ];
}

/** The base64 of these bytes at any offset in a longer text, like the password in `user:password`. */
function base64Within(bytes: Buffer, offset: number): string {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  return padded.toString("base64").slice(Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6));
}

function different(all: readonly Uint8Array[]): readonly Uint8Array[] {
  return [...new Map(all.map((each) => [Buffer.from(each).toString("latin1"), each])).values()];
}
