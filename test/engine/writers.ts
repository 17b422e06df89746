const code = (character: string): number => character.codePointAt(0) ?? 0;
const hex = (number: number, digits = 2): string => number.toString(16).padStart(digits, "0");
const json = (text: string): string => JSON.stringify(text).slice(1, -1);
const bytes = (text: string): readonly string[] =>
  Buffer.from(text, "utf8").toString("hex").match(/../g) ?? [];
const NAMES: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot" };

/** How software writes a text into another, by who does. */
export const WRITERS: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  JSON: json,
  "JSON of PHP": (text) => json(text).replaceAll("/", "\\/"),
  "JSON of Go, Rails and Django": (text) =>
    json(text).replace(/[<>&'+=\u0080-\uffff]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`),
  "JavaScript, in single quotes": (text) =>
    text.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n").replaceAll("/", "\\/"),
  "JavaScript, by number": (text) =>
    text.replace(/[^\w ]/g, (unit) =>
      unit.charCodeAt(0) < 128
        ? `\\x${hex(unit.charCodeAt(0))}`
        : `\\u${hex(unit.charCodeAt(0), 4).toUpperCase()}`,
    ),
  "bytes of C": (text) =>
    bytes(text)
      .map((byte) => `\\x${byte}`)
      .join(""),
  encodeURIComponent,
  "URL, as PHP and Java write it": (text) =>
    encodeURIComponent(text).replace(/[!'()*~.-]/g, (character) => `%${hex(code(character))}`),
  "URL in lower case": (text) => encodeURIComponent(text).replace(/%../g, (each) => each.toLowerCase()),
  form: (text) => new URLSearchParams([["", text]]).toString().slice(1),
  "HTML, with names": (text) =>
    text.replace(/[&<>"]/g, (each) => `&${NAMES[each]};`).replaceAll("'", "&#39;"),
  "HTML of Handlebars": (text) =>
    text.replace(/[&<>"'`=/]/g, (each) => `&#x${hex(code(each)).toUpperCase()};`),
  "HTML, all by number": (text) => Array.from(text, (each) => `&#${code(each)};`).join(""),
  base64: (text) => Buffer.from(text).toString("base64"),
  "base64 for URLs": (text) => Buffer.from(text).toString("base64url"),
  "base64 in lines": (text) =>
    Buffer.from(text)
      .toString("base64")
      .replace(/.{20}(?=.)/g, "$&\r\n"),
  hexadecimal: (text) => bytes(text).join(""),
  "hexadecimal with colons": (text) => bytes(text).join(":").toUpperCase(),
};
