/** Text with its escapes decoded. */
export interface Decoded {
  readonly bytes: Uint8Array;
  /** The position in the source where the character at an index began; for the length: the source's length. */
  origin(at: number): number;
}

/** The meaning of one escape, and its end. */
interface Escape {
  readonly end: number;
  /** A code point, or one raw byte. */
  readonly code: number;
  readonly isByte: boolean;
}

/** Passes: for two nested encodings, and one for text that merely looks escaped. */
const PASSES_MAX = 6;

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const AMPERSAND = 0x26;
const SEMICOLON = 0x3b;

/**
 * Decodes the escapes of JSON, JavaScript (`\x`, `\u`, octal), URLs and HTML repeatedly until there are none. Text that was
 * escaped twice has the same result, and so does text that only looks escaped, if it is decoded as well. Bytes are UTF-8. null:
 * there are no escapes.
 */
export function decodeEscapes(bytes: Uint8Array): Decoded | null {
  let decoded: Decoded | null = null;
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const before: Decoded | null = decoded;
    const next = decodeOnce(before?.bytes ?? bytes);
    if (next === null) break;
    decoded = before === null ? next : through(before, next);
  }
  return decoded;
}

const through = (before: Decoded, next: Decoded): Decoded => ({
  bytes: next.bytes,
  origin: (at) => before.origin(next.origin(at)),
});

/** Shorter runs are copied byte by byte. */
const STRETCH_BYTES = 64;

function decodeOnce(source: Uint8Array): Decoded | null {
  let at = nextIntroducer(source, 0);
  if (at === source.length) return null;
  const bytes = new Uint8Array(source.length);
  // Where runs without escapes begin: in the output, and in the source.
  const begins: number[] = [0];
  const origins: number[] = [0];
  let [length, done] = [0, 0];
  for (; at < source.length; at = nextIntroducer(source, at)) {
    const escape = readEscape(source, at, source[at] ?? 0);
    if (escape === null) {
      at++;
      continue;
    }
    length = copy(source, done, at, bytes, length);
    if (escape.isByte) bytes[length++] = escape.code;
    else length = writeUtf8(bytes, length, escape.code);
    done = at = escape.end;
    begins.push(length);
    origins.push(done);
  }
  if (begins.length === 1) return null;
  length = copy(source, done, source.length, bytes, length);
  return {
    bytes: bytes.subarray(0, length),
    origin(place) {
      let [low, high] = [0, begins.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((begins[middle] ?? 0) <= place) low = middle;
        else high = middle - 1;
      }
      return (origins[low] ?? 0) + place - (begins[low] ?? 0);
    },
  };
}

const IS_INTRODUCER = Uint8Array.from({ length: 256 }, (_each, byte) =>
  byte === BACKSLASH || byte === PERCENT || byte === AMPERSAND ? 1 : 0,
);

function nextIntroducer(source: Uint8Array, first: number): number {
  let at = first;
  while (at < source.length && IS_INTRODUCER[source[at] as number] === 0) at++;
  return at;
}

function copy(source: Uint8Array, first: number, end: number, target: Uint8Array, at: number): number {
  if (end - first >= STRETCH_BYTES) target.set(source.subarray(first, end), at);
  else for (let next = first; next < end; next++) target[at + next - first] = source[next] as number;
  return at + end - first;
}

function readEscape(source: Uint8Array, at: number, byte: number): Escape | null {
  if (byte === BACKSLASH) return readBackslashes(source, at);
  return byte === PERCENT ? readPercent(source, at) : readEntity(source, at);
}

const CONTROLS: ReadonlyMap<number, number> = new Map(
  Object.entries({ n: 10, r: 13, t: 9, b: 8, f: 12 }).map(([letter, code]) => [letter.charCodeAt(0), code]),
);

/** Consecutive backslashes count as one: each level of nesting doubles them. */
function readBackslashes(source: Uint8Array, at: number): Escape | null {
  let next = at;
  while (source[next] === BACKSLASH) next++;
  const letter = source[next];
  if (letter === undefined) return null;
  if (letter === 0x75) return readUnicode(source, next + 1) ?? asItIs(next, letter);
  if (letter === 0x78) {
    const code = hexNumber(source, next + 1, 2);
    return code < 0 ? asItIs(next, letter) : { end: next + 3, code, isByte: true };
  }
  const octal = octalNumber(source, next);
  if (octal >= 0) return { end: next + 3, code: octal, isByte: true };
  return { end: next + 1, code: CONTROLS.get(letter) ?? letter, isByte: true };
}

const asItIs = (at: number, byte: number): Escape => ({ end: at + 1, code: byte, isByte: true });

/** `0026`, `{26}`, or a surrogate pair; `at` is after the `u`. */
function readUnicode(source: Uint8Array, at: number): Escape | null {
  if (source[at] === 0x7b) {
    let end = at + 1;
    while (end < at + 8 && hexDigit(source[end]) >= 0) end++;
    const code = hexNumber(source, at + 1, end - at - 1);
    return source[end] === 0x7d && code >= 0 && code <= 0x10_ffff
      ? { end: end + 1, code, isByte: false }
      : null;
  }
  const code = hexNumber(source, at, 4);
  if (code < 0) return null;
  if (code >= 0xd800 && code <= 0xdbff) {
    let next = at + 4;
    while (source[next] === BACKSLASH) next++;
    const low = next > at + 4 && source[next] === 0x75 ? hexNumber(source, next + 1, 4) : -1;
    if (low >= 0xdc00 && low <= 0xdfff)
      return { end: next + 5, code: 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00), isByte: false };
  }
  return { end: at + 4, code, isByte: false };
}

/** `%26`, or `%u0026` from old scripts. */
function readPercent(source: Uint8Array, at: number): Escape | null {
  if (source[at + 1] === 0x75) {
    const code = hexNumber(source, at + 2, 4);
    return code < 0 ? null : { end: at + 6, code, isByte: false };
  }
  const code = hexNumber(source, at + 1, 2);
  return code < 0 ? null : { end: at + 3, code, isByte: true };
}

const ENTITY_LETTERS_MAX = 8;

function readEntity(source: Uint8Array, at: number): Escape | null {
  if (source[at + 1] === 0x23) return readNumbered(source, at + 2);
  let end = at + 1;
  while (end <= at + ENTITY_LETTERS_MAX && isLetterOrDigit(source[end])) end++;
  if (source[end] !== SEMICOLON) return null;
  const code = ENTITIES.get(Buffer.from(source.buffer, source.byteOffset + at + 1, end - at - 1).toString());
  return code === undefined ? null : { end: end + 1, code, isByte: false };
}

/** `38` or `x26`, with or without a semicolon; `at` is after the `#`. */
function readNumbered(source: Uint8Array, at: number): Escape | null {
  const isHex = source[at] === 0x78 || source[at] === 0x58;
  const first = isHex ? at + 1 : at;
  let end = first;
  let code = 0;
  for (; end < first + 8; end++) {
    const digit = hexDigit(source[end]);
    if (digit < 0 || (!isHex && digit > 9)) break;
    code = code * (isHex ? 16 : 10) + digit;
  }
  if (end === first || code > 0x10_ffff) return null;
  return { end: source[end] === SEMICOLON ? end + 1 : end, code, isByte: false };
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function hexNumber(source: Uint8Array, at: number, digits: number): number {
  let number = digits === 0 ? -1 : 0;
  for (let next = at; next < at + digits; next++) {
    const digit = hexDigit(source[next]);
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}

function octalNumber(source: Uint8Array, at: number): number {
  let number = 0;
  for (let next = at; next < at + 3; next++) {
    const digit = (source[next] ?? 0) - 0x30;
    if (digit < 0 || digit > 7) return -1;
    number = number * 8 + digit;
  }
  return number > 0xff ? -1 : number;
}

const isLetterOrDigit = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a));

function writeUtf8(bytes: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    bytes[at] = code;
    return at + 1;
  }
  if (code < 0x800) {
    bytes.set([0xc0 | (code >> 6), 0x80 | (code & 0x3f)], at);
    return at + 2;
  }
  if (code < 0x1_0000) {
    bytes.set([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)], at);
    return at + 3;
  }
  bytes.set(
    [0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)],
    at,
  );
  return at + 4;
}

/** Named character references of HTML: those for ASCII, and for Latin-1 from U+00A0 in order. */
const LATIN_1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

const ASCII: Readonly<Record<string, string>> = {
  Tab: "\t",
  NewLine: "\n",
  excl: "!",
  quot: '"',
  QUOT: '"',
  num: "#",
  dollar: "$",
  percnt: "%",
  amp: "&",
  AMP: "&",
  apos: "'",
  lpar: "(",
  rpar: ")",
  ast: "*",
  midast: "*",
  plus: "+",
  comma: ",",
  period: ".",
  sol: "/",
  colon: ":",
  semi: ";",
  lt: "<",
  LT: "<",
  equals: "=",
  gt: ">",
  GT: ">",
  quest: "?",
  commat: "@",
  lsqb: "[",
  lbrack: "[",
  bsol: "\\",
  rsqb: "]",
  rbrack: "]",
  Hat: "^",
  lowbar: "_",
  grave: "`",
  lcub: "{",
  lbrace: "{",
  verbar: "|",
  vert: "|",
  rcub: "}",
  rbrace: "}",
  euro: "€",
  ndash: "–",
  mdash: "—",
  hellip: "…",
};

const ENTITIES: ReadonlyMap<string, number> = new Map([
  ...Object.entries(ASCII).map(([name, character]): [string, number] => [
    name,
    character.codePointAt(0) ?? 0,
  ]),
  ...LATIN_1.split(" ").map((name, index): [string, number] => [name, 0xa0 + index]),
]);
