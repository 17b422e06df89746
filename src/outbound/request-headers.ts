import { GateError } from "./gate-error.ts";

export type Header = readonly [name: string, value: string];

/** Set by the connection itself. A custom `host` could send a credential to another site behind an allowed front end. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  "host content-length transfer-encoding connection keep-alive proxy-connection upgrade te trailer expect http2-settings".split(
    " ",
  ),
);
/** Headers that don't identify the sender: the only ones that a request keeps when it is redirected to another origin. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "user-agent",
]);
/** Headers that describe a body. */
const BODY_HEADERS = /^content-/;

/** The headers of one hop: the request's own, those that the hop adds (which take precedence; cookies are joined), and our defaults. */
export function headersOf(
  own: readonly Header[],
  added: readonly Header[],
  defaults: readonly Header[],
  host: string,
): readonly Header[] {
  if (own.length === 0 && added.length === 0) return defaults;
  const cookies = [...own, ...added].filter(([name]) => isNamed(name, "cookie")).map(([, value]) => value);
  const names = new Set(added.map(([name]) => name.toLowerCase()));
  const kept = [...own.filter(([name]) => !names.has(name.toLowerCase())), ...added].filter(
    ([name]) => !isNamed(name, "cookie"),
  );
  const missing = defaults.filter(([name]) => !kept.some(([each]) => isNamed(each, name)));
  const headers: readonly Header[] = [
    ...kept,
    ...missing,
    ...(cookies.length > 0 ? [["cookie", cookies.join("; ")] as const] : []),
  ];
  for (const [name, value] of headers) checkHeader(name, value, host);
  return headers;
}

function checkHeader(name: string, value: string, host: string): void {
  if (OWN_HEADERS.has(name.toLowerCase())) {
    throw new GateError(
      "refused",
      `the request to ${host} sets the header ${name.toLowerCase()}, which belongs to the connection`,
    );
  }
  // Neither is shown: by mistake, a name may contain a secret.
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
    throw new GateError("refused", `the request to ${host} has a malformed header name`);
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    throw new GateError(
      "refused",
      `the request to ${host} has a header value with characters that are not allowed in a header`,
    );
  }
}

function isNamed(name: string, lowerCase: string): boolean {
  return name.toLowerCase() === lowerCase;
}

export function plainHeaders(headers: readonly Header[]): readonly Header[] {
  return headers.filter(([name]) => PLAIN_HEADERS.has(name.toLowerCase()));
}

export function withoutBodyHeaders(headers: readonly Header[]): readonly Header[] {
  return headers.filter(([name]) => !BODY_HEADERS.test(name.toLowerCase()));
}

/** Whether a header may contain a secret. Cookies are not considered: their jar decides where they may be sent. */
export function mayContainSecret(headers: readonly Header[]): boolean {
  return headers.some(([name]) => {
    const lowerCase = name.toLowerCase();
    return lowerCase !== "cookie" && !PLAIN_HEADERS.has(lowerCase) && !BODY_HEADERS.test(lowerCase);
  });
}
