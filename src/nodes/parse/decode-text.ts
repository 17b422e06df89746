import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { NodeFailure } from "#nodes/define-node.ts";

/** The supported charsets, by their names in the WHATWG's Encoding Standard, which has further labels for most of them. */
export const CHARSETS: readonly string[] = [
  ...["utf-8", "utf-16le", "utf-16be", "iso-8859-1", "windows-1252"],
  ...[2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16].map((part) => `iso-8859-${part}`),
  ...[1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258, 874].map((page) => `windows-${page}`),
  ...["ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic"],
  ...["big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp", "shift_jis"],
];

export function isCharset(name: string): boolean {
  try {
    return CHARSETS.includes(name.toLowerCase()) || new TextDecoder(name).encoding !== "";
  } catch {
    return false;
  }
}

/** The charset that a content type names, lower case, or null. */
export function charsetOf(contentType: string | null | undefined): string | null {
  const match = /;\s*charset\s*=\s*"?([\w.:-]{1,40})"?/i.exec(contentType ?? "");
  return match?.[1]?.toLowerCase() ?? null;
}

/** Decodes a stream of bytes; default: UTF-8. Bytes that are invalid in the charset cause a NodeFailure and never become `\uFFFD`. */
export async function* decodeChunks(
  chunks: AsyncIterable<Uint8Array>,
  charset: string | null,
  place: string,
): AsyncIterable<string> {
  const decoder = decoderFor(charset ?? "utf-8", place);
  for await (const chunk of chunks)
    yield decoded(() => decoder.decode(chunk, { stream: true }), decoder.encoding, place);
  yield decoded(() => decoder.decode(), decoder.encoding, place);
}

export function decodeWhole(bytes: Uint8Array, charset: string | null, place: string): string {
  const decoder = decoderFor(charset ?? "utf-8", place);
  return decoded(() => decoder.decode(bytes), decoder.encoding, place);
}

/** Like browsers: a page that isn't UTF-8 and whose content type has no charset may declare one at its beginning. */
export function decodeHtml(bytes: Uint8Array, charset: string | null, place: string): string {
  if (charset !== null || isUtf8(bytes)) return decodeWhole(bytes, charset, place);
  const top = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  const meta = /<meta[^>]{1,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(top);
  return decodeWhole(bytes, meta?.[1] ?? null, place);
}

/** According to XML: a byte order mark, else the charset in the declaration. */
export function decodeXml(bytes: Uint8Array, charset: string | null, place: string): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decodeWhole(bytes, "utf-16le", place);
  if (first === 0xfe && second === 0xff) return decodeWhole(bytes, "utf-16be", place);
  if (charset !== null || isUtf8(bytes)) return decodeWhole(bytes, charset, place);
  const top = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  const declared = /^<\?xml[^>]{1,200}?encoding\s*=\s*["']([\w.:-]{1,40})/i.exec(top);
  return decodeWhole(bytes, declared?.[1] ?? null, place);
}

function decoderFor(charset: string, place: string): TextDecoder {
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch {
    throw new NodeFailure(
      `${place} has an unknown charset: ${charset}. Set \`charset\` of the format to the right one.`,
    );
  }
}

function decoded(decode: () => string, charset: string, place: string): string {
  try {
    return decode();
  } catch {
    throw new NodeFailure(
      `${place} is not ${charset} text. If it is text in another charset, set \`charset\` of the format; a file that isn't text can't be parsed.`,
    );
  }
}
