/** Stands where a value is not shown that may be a secret. */
export const HIDDEN = "…";

/** Whose exchange it is: one of a login may hold tokens that nobody has read yet. */
export type AnswerOf = "node" | "login";

const SECRET_NAME =
  "[\\w-]{0,40}(?:token|secret|passw|session|csrf|xsrf|jwt|signature|assertion|cookie|authorization|api_?-?key|credential|nonce|otp)[\\w-]{0,40}";
/** `"access_token": "…"`, `csrf=…`. */
const NAMED_SECRET = new RegExp(
  `("?\\b${SECRET_NAME}"?\\s{0,5}[:=]\\s{0,5})("(?:[^"\\\\]|\\\\.){0,4000}"?|[^\\s,;&}<"]+)`,
  "gi",
);
const JWT = /\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g;
/** What no person writes: letters with digits, long and without a space. */
const RANDOM = /[A-Za-z0-9+/_=-]{16,}/g;
const INPUT = /<input\b[^>]{0,4000}>/gi;

/** A text without what may be a secret, though nobody knows it for one: by its name, and in a login also by its look. */
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
