import { isJsonObject, type Json } from "./json.ts";

/**
 * A handle stands for a value that a target gave, as cookies and what a login extracts are, in all that nodes and expressions see.
 * It begins with `HANDLE_PREFIX`; eight digits say for which run, credential and origin it is, and the rest for which value. Letters
 * and digits alone: no URL, header, form or JSON writes them in another way.
 */
export const HANDLE_PREFIX = "lkhandle";
export const HANDLE_SCOPE_DIGITS = 8;
export const HANDLE_VALUE_DIGITS = 32;
export const HANDLE_CHARACTERS = HANDLE_PREFIX.length + HANDLE_SCOPE_DIGITS + HANDLE_VALUE_DIGITS;

/** What a value becomes where it is not shown. */
export const REDACTED = "[REDACTED]";

/** To be put into regular expressions. */
export const HANDLE_SOURCE = `${HANDLE_PREFIX}[0-9a-f]{${HANDLE_SCOPE_DIGITS + HANDLE_VALUE_DIGITS}}`;
const HANDLES = new RegExp(HANDLE_SOURCE, "g");
const WHOLE = new RegExp(`^${HANDLE_SOURCE}$`);

export const isHandle = (text: string): boolean => WHOLE.test(text);

/** A text as it is shown and kept for good. */
export function withoutHandles(text: string, place = REDACTED): string {
  return text.includes(HANDLE_PREFIX) ? text.replace(HANDLES, place) : text;
}

/** A value as it is shown and kept for good: keys, too. */
export function withoutHandlesIn<T extends Json>(value: T): T {
  const text = JSON.stringify(value);
  return text.includes(HANDLE_PREFIX) ? (JSON.parse(withoutHandles(text)) as T) : value;
}

/** `edited` is what somebody made of `before` as it was shown: what was left alone is what it was. */
export function withHandlesOf(before: Json | undefined, edited: Json): Json {
  if (typeof edited === "string")
    return typeof before === "string" && withoutHandles(before) === edited ? before : edited;
  if (Array.isArray(edited)) {
    const items: readonly Json[] = Array.isArray(before) ? before : [];
    return edited.map((item: Json, index) => withHandlesOf(items[index], item));
  }
  if (!isJsonObject(edited)) return edited;
  const fields = isJsonObject(before) ? before : {};
  // `fromEntries` defines: a key `__proto__` stays a key.
  return Object.fromEntries(
    Object.entries(edited).map(([key, item]) => [
      key,
      withHandlesOf(Object.hasOwn(fields, key) ? fields[key] : undefined, item),
    ]),
  );
}
