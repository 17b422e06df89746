import { RE2JS } from "re2js";
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
 * begin with `_`). Passwords and texts are kept to the byte: a space at the end may belong to a password. An email address
 * loses the spaces around it; a TOTP secret becomes the one text that `parseTotpSecret` reads, whatever its spacing was.
 */
export function checkFormValues(
  fields: readonly StrategyField[],
  submitted: ReadonlyMap<string, string>,
): CheckedForm {
  const values = new Map<string, string>();
  const errors = new Map<string, string>();
  for (const field of fields) {
    const checked = checkValue(field, submitted.get(field.key) ?? "");
    if (checked === undefined) continue;
    if ("error" in checked) errors.set(field.key, checked.error);
    else values.set(field.key, checked.value);
  }
  return { values, errors };
}

type Checked = { readonly value: string } | { readonly error: string };

/** Undefined: an optional field was left empty. */
function checkValue(field: StrategyField, typed: string): Checked | undefined {
  if (Buffer.byteLength(typed) > limits.formValueBytesMax) return { error: `${field.label} is too long.` };
  // Blank is empty, but in a password a space counts.
  if (field.type === "password" ? typed === "" : typed.trim() === "") {
    return field.required ? { error: `${field.label} is required.` } : undefined;
  }
  const value = field.type === "email" ? typed.trim() : typed;
  const error = checkLength(field, value) ?? checkPattern(field, value);
  if (error !== undefined) return { error };
  return checkType(field, value);
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
      return { value };
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
