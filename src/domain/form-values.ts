import { RE2JS } from "re2js";
import { issue, type FormIssue } from "./form-issue.ts";
import { checkHeaderPairs, readHeaderRows, writeHeaders } from "./header-rows.ts";
import { limits } from "./limits.ts";
import type { StrategyField } from "./strategy.ts";
import { parseTotpSecret, writeTotpSecret } from "./totp.ts";

/** A submitted form, after its checks. */
export interface CheckedForm {
  /** Values by field key, ready to seal; only fields that were filled in and are valid. */
  readonly values: ReadonlyMap<string, string>;
  /** Problems by field key. */
  readonly errors: ReadonlyMap<string, FormIssue>;
}

/**
 * Checks a submitted form against its strategy. Names that are not fields are ignored (the form's hidden inputs begin with `_`).
 * Passwords and text are stored unchanged: a space at the end may belong to a password. Spaces around email and web addresses are
 * removed; a TOTP secret is stored in the canonical form of `parseTotpSecret`.
 */
export function checkFormValues(
  fields: readonly StrategyField[],
  submitted: ReadonlyMap<string, string>,
): CheckedForm {
  const values = new Map<string, string>();
  const errors = new Map<string, FormIssue>();
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

type Checked = { readonly value: string } | { readonly error: FormIssue };

const wrong = (...given: Parameters<typeof issue>): Checked => ({ error: issue(...given) });

function checkHeaders(field: StrategyField, submitted: ReadonlyMap<string, string>): Checked | undefined {
  const pairs = readHeaderRows(field.key, submitted);
  if (pairs.length === 0) return field.required ? wrong("required") : undefined;
  const code = checkHeaderPairs(pairs);
  if (code !== null) return wrong(code);
  const value = writeHeaders(pairs);
  return Buffer.byteLength(value) > limits.formValueBytesMax ? wrong("too_long") : { value };
}

/** Undefined: an optional field was left empty. */
function checkValue(field: StrategyField, typed: string): Checked | undefined {
  if (field.type === "checkbox") return checkBox(field, typed);
  if (field.type === "file" && Buffer.byteLength(typed) > limits.formFileBytesMax)
    return wrong("file_too_large", { size: limits.formFileBytesMax / 1_024 });
  if (field.type !== "file" && Buffer.byteLength(typed) > limits.formValueBytesMax) return wrong("too_long");
  // A blank value counts as empty, but in a password a space is significant.
  if (field.type === "password" ? typed === "" : typed.trim() === "") {
    return field.required ? wrong("required") : undefined;
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

/** A check box is stored only when it is ticked, as an HTML form sends it. */
function checkBox(field: StrategyField, typed: string): Checked | undefined {
  if (typed !== "") return { value: "true" };
  return field.required ? wrong("must_tick") : undefined;
}

function checkLength({ minLength, maxLength }: StrategyField, value: string): FormIssue | undefined {
  // Characters approximated by code points.
  const length = Array.from(value).length;
  if (minLength !== null && length < minLength) return issue("too_short", { count: minLength });
  if (maxLength !== null && length > maxLength) return issue("over_maximum", { count: maxLength });
  return undefined;
}

/** Authors' patterns run on RE2, which can't hang, and must match the whole value, as in HTML. */
function checkPattern({ pattern }: StrategyField, value: string): FormIssue | undefined {
  return pattern === null || RE2JS.compile(pattern).matches(value) ? undefined : issue("pattern");
}

/** As permissive as HTML's check: one `@`, no spaces, text on both sides. The target decides whether the address exists. */
const EMAIL = /^[^\s@\p{Cc}]{1,64}@(?!\.)(?!.*\.\.)[^\s@\p{Cc}]{1,253}(?<!\.)$/u;

function checkType(field: StrategyField, value: string): Checked {
  switch (field.type) {
    case "text":
    case "password":
    case "textarea":
    case "checkbox":
    case "headers":
      return { value };
    case "url":
      return isWebAddress(value) ? { value } : wrong("url");
    case "select":
      return field.options.some((option) => option.value === value) ? { value } : wrong("choice");
    case "file":
      return checkFile(value);
    case "email":
      return EMAIL.test(value) ? { value } : wrong("email");
    case "totp_secret": {
      const parsed = parseTotpSecret(value);
      return parsed.ok ? { value: writeTotpSecret(parsed.secret) } : { error: parsed.issue };
    }
  }
}

/** Refused, because a user name or password in an address would not be treated as a secret. */
function isWebAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === "" && password === "";
}

/** Text files only: bytes that are not UTF-8 were decoded as replacement characters, and a text file contains neither those nor NUL. */
function checkFile(text: string): Checked {
  return /[\0\ufffd]/.test(text) ? wrong("not_text") : { value: text };
}
