import { RE2JS } from "re2js";
import { explainHeaders, readHeaderRows, writeHeaders } from "./header-rows.ts";
import { limits } from "./limits.ts";
import type { StrategyField } from "./strategy.ts";
import { parseTotpSecret, writeTotpSecret } from "./totp.ts";

/** What an end user submitted, checked. */
export interface CheckedForm {
  /** By field key, ready to seal; only fields that were filled in and are in order. */
  readonly values: ReadonlyMap<string, string>;
  /** By field key: one sentence or two for the end user, which never hold what was typed. */
  readonly errors: ReadonlyMap<string, string>;
}

/**
 * Checks a submitted form against its strategy. Names that are no field are ignored (design, page 3: our own hidden inputs
 * begin with `_`). Passwords and texts are kept to the byte: a space at the end may belong to a password. Email and web addresses
 * lose the spaces around them; a TOTP secret becomes the one text that `parseTotpSecret` reads, whatever its spacing was.
 */
export function checkFormValues(
  fields: readonly StrategyField[],
  submitted: ReadonlyMap<string, string>,
): CheckedForm {
  const values = new Map<string, string>();
  const errors = new Map<string, string>();
  for (const field of fields) {
    const checked =
      field.type === "headers"
        ? checkHeaders(field, submitted)
        : checkValue(field, submitted.get(field.key) ?? "");
    if (checked === undefined) continue;
    if ("error" in checked) errors.set(field.key, checked.error);
    else values.set(field.key, checked.value);
  }
  return { values, errors };
}

type Checked = { readonly value: string } | { readonly error: string };

function checkHeaders(field: StrategyField, submitted: ReadonlyMap<string, string>): Checked | undefined {
  const pairs = readHeaderRows(field.key, submitted);
  if (pairs.length === 0) return field.required ? { error: `${field.label} is required.` } : undefined;
  const error = explainHeaders(field, pairs);
  if (error !== null) return { error };
  const value = writeHeaders(pairs);
  return Buffer.byteLength(value) > limits.formValueBytesMax
    ? { error: `${field.label} is too long.` }
    : { value };
}

/** Undefined: an optional field was left empty. */
function checkValue(field: StrategyField, typed: string): Checked | undefined {
  if (field.type === "checkbox") return checkBox(field, typed);
  if (field.type === "file" && Buffer.byteLength(typed) > limits.formFileBytesMax)
    return {
      error: `${field.label} is too large: a file of at most ${limits.formFileBytesMax / 1_024} KB is taken.`,
    };
  if (field.type !== "file" && Buffer.byteLength(typed) > limits.formValueBytesMax)
    return { error: `${field.label} is too long.` };
  // Blank is empty, but in a password a space counts.
  if (field.type === "password" ? typed === "" : typed.trim() === "") {
    return field.required ? { error: `${field.label} is required.` } : undefined;
  }
  const value = normalise(field, typed);
  const error = checkLength(field, value) ?? checkPattern(field, value);
  if (error !== undefined) return { error };
  return checkType(field, value);
}

function normalise({ type }: StrategyField, typed: string): string {
  if (type === "email" || type === "url") return typed.trim();
  // HTML sends the line breaks of a textarea as CR LF, whatever was typed.
  return type === "textarea" ? typed.replaceAll("\r\n", "\n") : typed;
}

/** Stored when it is ticked, and not otherwise: as an HTML form sends it. */
function checkBox(field: StrategyField, typed: string): Checked | undefined {
  if (typed !== "") return { value: "true" };
  return field.required ? { error: `${field.label} must be ticked.` } : undefined;
}

function checkLength({ label, minLength, maxLength }: StrategyField, value: string): string | undefined {
  // Characters as people count them, near enough: code points.
  const length = Array.from(value).length;
  const characters = (count: number) => (count === 1 ? "1 character" : `${count} characters`);
  if (minLength !== null && length < minLength)
    return `${label} must have at least ${characters(minLength)}.`;
  if (maxLength !== null && length > maxLength) return `${label} must have at most ${characters(maxLength)}.`;
  return undefined;
}

/** Authors' patterns run on RE2, which can't hang, and must match the whole value, as in HTML. */
function checkPattern({ label, pattern }: StrategyField, value: string): string | undefined {
  if (pattern === null || RE2JS.compile(pattern).matches(value)) return undefined;
  return `${label} does not have the expected form. Please check it.`;
}

/** As loose as HTML's: whether it arrives is for the target to say. One `@`, no blanks, something on both sides. */
const EMAIL = /^[^\s@\p{Cc}]{1,64}@(?!\.)(?!.*\.\.)[^\s@\p{Cc}]{1,253}(?<!\.)$/u;

function checkType(field: StrategyField, value: string): Checked {
  switch (field.type) {
    case "text":
    case "password":
    case "textarea":
    case "checkbox":
    case "headers":
      return { value };
    case "url": {
      const error = `${field.label} must be a web address like https://www.example.com.`;
      return isWebAddress(value) ? { value } : { error };
    }
    case "select": {
      const error = `${field.label} must be one of the choices.`;
      return field.options.some((option) => option.value === value) ? { value } : { error };
    }
    case "file":
      return checkFile(field, value);
    case "email": {
      const error = `${field.label} must be an email address like name@example.com.`;
      return EMAIL.test(value) ? { value } : { error };
    }
    case "totp_secret": {
      const parsed = parseTotpSecret(value);
      return parsed.ok ? { value: writeTotpSecret(parsed.secret) } : { error: parsed.message };
    }
  }
}

/** A user name or a password in an address is a secret that nobody treats as one. */
function isWebAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === "" && password === "";
}

/** Text only: what isn't UTF-8 was decoded with replacement characters, and no text file holds those or a NUL. */
function checkFile({ label }: StrategyField, text: string): Checked {
  if (!/[\0\ufffd]/.test(text)) return { value: text };
  return {
    error:
      `${label} is not a text file. A certificate or a key must be in PEM form, which begins with -----BEGIN; ` +
      "files in PKCS#12 form (.p12, .pfx) or DER form can be converted to it.",
  };
}
