import { isJsonObject, type Json } from "./json.ts";

/**
 * A handle represents a value that a target issued (a cookie, an extracted value) in everything that nodes and expressions see.
 * It begins with `HANDLE_PREFIX`; eight digits identify run, credential and origin, and the rest identifies the value. It consists of letters
 * and digits only, which no URL, header, form or JSON encodes.
 */
export const HANDLE_PREFIX = "lkhandle";
export const HANDLE_SCOPE_DIGITS = 8;
export const HANDLE_VALUE_DIGITS = 32;
export const HANDLE_CHARACTERS = HANDLE_PREFIX.length + HANDLE_SCOPE_DIGITS + HANDLE_VALUE_DIGITS;

/** The replacement of a value that is not shown. */
export const REDACTED = "[REDACTED]";

/** The pattern of a handle, for use in regular expressions. */
export const HANDLE_SOURCE = `${HANDLE_PREFIX}[0-9a-f]{${HANDLE_SCOPE_DIGITS + HANDLE_VALUE_DIGITS}}`;
const HANDLES = new RegExp(HANDLE_SOURCE, "g");
const WHOLE = new RegExp(`^${HANDLE_SOURCE}$`);

export const isHandle = (text: string): boolean => WHOLE.test(text);

/** Removes handles from text that is shown or stored permanently. */
export function withoutHandles(text: string, place = REDACTED): string {
  return text.includes(HANDLE_PREFIX) ? text.replace(HANDLES, place) : text;
}

/** Removes handles from a value that is shown or stored permanently, also from keys. */
export function withoutHandlesIn<T extends Json>(value: T): T {
  const text = JSON.stringify(value);
  return text.includes(HANDLE_PREFIX) ? (JSON.parse(withoutHandles(text)) as T) : value;
}

/** Restores the handles in `edited`, an operator's version of `before` as shown: unchanged parts get their handles back. */
export function withHandlesOf(before: Json | undefined, edited: Json): Json {
  if (typeof edited === "string")
    return typeof before === "string" && withoutHandles(before) === edited ? before : edited;
  if (Array.isArray(edited)) {
    const items: readonly Json[] = Array.isArray(before) ? before : [];
    return edited.map((item: Json, index) => withHandlesOf(items[index], item));
  }
  if (!isJsonObject(edited)) return edited;
  const fields = isJsonObject(before) ? before : {};
  // `fromEntries` defines properties, so a key `__proto__` remains an ordinary key.
  return Object.fromEntries(
    Object.entries(edited).map(([key, item]) => [
      key,
      withHandlesOf(Object.hasOwn(fields, key) ? fields[key] : undefined, item),
    ]),
  );
}
