import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { DataRecord } from "#domain/record.ts";

/** Takes a run's secrets out of whatever is stored. The second net: no node sees a secret in the first place. */
export interface Redactor {
  /** A text that a target gave. */
  text(text: string): string;
  /** Bytes as a text of one byte a character; a secret is found in its UTF-8 form. */
  bytes(text: string): string;
  /** The bytes of the longest thing that is looked for; 0: there is nothing to look for. */
  readonly longest: number;
  /** A whole body that a target gave: JSON stays JSON, also where the secret is a number in it. */
  body(text: string): string;
  /** A message for the log or the operator: also where letters lost their case, as in a host name. */
  message(text: string): string;
  /** A JSON value, as text. Its strings, keys and numbers are looked at one by one: what is stored stays JSON. */
  json(value: Json): string;
  /** Records as newline-delimited JSON. */
  lines(records: readonly DataRecord[]): string;
  /** Looks for these too from now on: what the run was given while it ran. */
  add(secrets: readonly string[]): void;
  /** How many texts were changed so far. */
  readonly changes: number;
}

/** Values under six characters can't be told from ordinary text (design, page 6, T14). */
const SHORTEST = 6;
const PLACE = "[REDACTED]";

/** Design, page 6, T11: exact, URL, base64, base64url, hex, JSON and HTML, in the variants that software writes. */
export function makeRedactor(secrets: readonly string[]): Redactor {
  let forms: readonly string[] = [];
  // What a form looks like inside JSON text. A number is JSON as it is.
  let written: readonly string[] = [];
  let inBytes: readonly string[] = [];
  const add = (more: readonly string[]): void => {
    const added = more.filter((secret) => secret.length >= SHORTEST).flatMap(formsOf);
    forms = [...new Set([...forms, ...added])]
      .filter((form) => form.length >= SHORTEST)
      // Longest first, so that no form leaves a piece of another behind.
      .sort((a, b) => b.length - a.length);
    written = [...new Set([...forms, ...forms.map(jsonEscaped)])];
    inBytes = forms.map((form) => Buffer.from(form, "utf8").toString("latin1"));
  };
  add(secrets);
  let changes = 0;
  const replace = (text: string, all: readonly string[]): string => {
    const clean = all.reduce(
      (rest, form) => (rest.includes(form) ? rest.replaceAll(form, PLACE) : rest),
      text,
    );
    if (clean !== text) changes++;
    return clean;
  };
  const text = (given: string): string => replace(given, forms);
  const isTouched = (json: string): boolean => written.some((form) => json.includes(form));
  const cleanBody = (given: string): string => {
    try {
      return JSON.stringify(cleanJson(JSON.parse(given) as Json, text));
    } catch {
      // No JSON, or so deep that it can't be written again.
      return text(given);
    }
  };
  return {
    text,
    bytes: (given) => replace(given, inBytes),
    get longest() {
      return Math.max(0, ...inBytes.map((form) => form.length));
    },
    body: (given) => (isTouched(given) ? cleanBody(given) : given),
    message: (given) =>
      replace(
        text(given),
        forms.map((form) => form.toLowerCase()),
      ),
    json(value) {
      const whole = JSON.stringify(value);
      return isTouched(whole) ? JSON.stringify(cleanJson(value, text)) : whole;
    },
    lines(records) {
      const whole = linesOf(records);
      return isTouched(whole) ? linesOf(records.map((record) => cleanRecord(record, text))) : whole;
    },
    add,
    get changes() {
      return changes;
    },
  };
}

const linesOf = (records: readonly DataRecord[]): string =>
  `${records.map((record) => JSON.stringify(record)).join("\n")}\n`;

/** The record's own keys stay, also when somebody's password is `isValid`. */
function cleanRecord({ data, errors, isValid }: DataRecord, text: (given: string) => string): DataRecord {
  return {
    data: cleanJson(data, text) as JsonObject,
    errors: errors.map(({ field, code, message }) => ({
      field: field === null ? null : text(field),
      code: text(code),
      message: text(message),
    })),
    isValid,
  };
}

function cleanJson(value: Json, text: (given: string) => string): Json {
  if (typeof value === "string") return text(value);
  if (typeof value === "number") {
    const clean = text(String(value));
    return clean === String(value) ? value : clean;
  }
  if (Array.isArray(value)) return value.map((item: Json) => cleanJson(item, text));
  if (!isJsonObject(value)) return value;
  // `fromEntries` defines: a key `__proto__` stays a key.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), cleanJson(item, text)]));
}

function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, "utf8");
  const json = jsonEscaped(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  const form = new URLSearchParams([["", secret]]).toString().slice(1);
  const hex = bytes.toString("hex");
  return [
    secret,
    json,
    json.replaceAll("/", "\\/"),
    asciiEscaped(json),
    jsonEscaped(json),
    ...[url, form].flatMap((encoded) => [encoded, encoded.replace(/%../g, (code) => code.toLowerCase())]),
    ...[NAMED, { ...NAMED, "'": "&#x27;" }, { ...NAMED, '"': "&#34;" }, { ...NAMED, "'": "&apos;" }].map(
      (entities) => secret.replace(/[&<>"']/g, (character) => entities[character] ?? character),
    ),
    // Text only: quotes stay in it.
    secret.replace(/[&<>]/g, (character) => NAMED[character] ?? character),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    ...[0, 1, 2].flatMap((offset) => {
      const within = base64Within(bytes, offset);
      return [within, within.replaceAll("+", "-").replaceAll("/", "_")];
    }),
    hex,
    hex.toUpperCase(),
  ];
}

const NAMED: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1);

const asciiEscaped = (json: string): string =>
  json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What base64 has for these bytes wherever they stand in a longer text, as the password does in `user:password`. */
function base64Within(bytes: Buffer, offset: number): string {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  return padded.toString("base64").slice(Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6));
}
