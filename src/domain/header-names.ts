/** Headers that the connection sets itself; the egress gate refuses them. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(
  "host content-length transfer-encoding connection keep-alive proxy-connection upgrade te trailer expect http2-settings".split(
    " ",
  ),
);

/** RFC 9110, 5.6.2: a token. */
export const isHeaderName = (name: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);

export const belongsToConnection = (name: string): boolean => CONNECTION_HEADERS.has(name.toLowerCase());

/** Valid header values: RFC 9110's field-content, one byte per character. */
export const isHeaderValue = (value: string): boolean => !/[^\t\x20-\x7e\x80-\xff]/.test(value);
