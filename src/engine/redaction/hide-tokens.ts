/** Replaces a value that may be a secret. */
export const HIDDEN = "…";

/** The origin of the exchange: a login's may contain tokens that were not extracted yet. */
export type AnswerOf = "node" | "login";

const SECRET_NAME =
  "[\\w-]{0,40}(?:token|secret|passw|session|csrf|xsrf|jwt|signature|assertion|cookie|authorization|api_?-?key|credential|nonce|otp)[\\w-]{0,40}";
/** `"access_token": "…"`, `csrf=…`. */
const NAMED_SECRET = new RegExp(
  `("?\\b${SECRET_NAME}"?\\s{0,5}[:=]\\s{0,5})("(?:[^"\\\\]|\\\\.){0,4000}"?|[^\\s,;&}<"]+)`,
  "gi",
);
const IS_SECRET_NAME = new RegExp(`^${SECRET_NAME}$`, "i");
const JWT = /\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g;
/** A token-like value: long, letters with digits, no space. */
const RANDOM = /[A-Za-z0-9+/_=-]{16,}/g;
const INPUT = /<input\b[^>]{0,4000}>/gi;

/** Hides values that may be unknown secrets: by their names and, in a login, also by their appearance. */
export function withoutTokens(text: string, of: AnswerOf): string {
  const named = text.replace(NAMED_SECRET, `$1${HIDDEN}`).replace(JWT, HIDDEN);
  if (of === "node") return named;
  return named
    .replace(INPUT, withoutHiddenValue)
    .replace(RANDOM, (found) => (/\d/.test(found) && /[A-Za-z]/.test(found) ? HIDDEN : found));
}

function withoutHiddenValue(input: string): string {
  if (!/\btype\s{0,5}=\s{0,5}["']?hidden\b/i.test(input)) return input;
  return input.replace(/(\bvalue\s{0,5}=\s{0,5})("[^"]*"|'[^']*'|[^\s>]+)/gi, `$1"${HIDDEN}"`);
}

/** Whether the name of a header or parameter suggests a secret value. */
export const isSecretName = (name: string): boolean => IS_SECRET_NAME.test(name);

/** The redactor does not look for such short values, because they occur in ordinary text; here that does no harm. */
const SHORT_CHARACTERS = { min: 2, max: 5 } as const;

/** Hides short values of a credential, in the forms that requests use. */
export function withoutShort(text: string, values: readonly string[]): string {
  let clean = text;
  for (const value of values) {
    if (value.length < SHORT_CHARACTERS.min || value.length > SHORT_CHARACTERS.max) continue;
    const encoded = encodeURIComponent(value);
    const forms = new Set([
      value,
      encoded,
      encoded.replaceAll("%20", "+"),
      JSON.stringify(value).slice(1, -1),
    ]);
    for (const form of forms) clean = clean.replaceAll(form, HIDDEN);
  }
  return clean;
}
