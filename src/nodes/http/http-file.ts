import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { FileValue } from "#domain/value.ts";

/** A response as a file: `save: file`. */
export function fileOfResponse({ body, headers, url, kept }: OutboundResponse): FileValue {
  return {
    form: "file",
    filename: filenameOf(headers.get("content-disposition") ?? "", url),
    contentType: headers.get("content-type") ?? null,
    sizeBytes: kept?.sizeBytes ?? body.byteLength,
    open:
      kept?.open ??
      async function* () {
        yield body;
      },
  };
}

/** RFC 6266: the name from the target, without folders; else the last part of the path, if it looks like a file name. */
function filenameOf(disposition: string, url: string): string | null {
  const extended = /;\s*filename\*\s*=\s*(utf-8|iso-8859-1)'[^']*'([^\s;]+)/i.exec(disposition);
  const plain = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))/i.exec(disposition);
  const given =
    (extended && decoded(extended[1] ?? "", extended[2] ?? "")) ??
    plain?.[1]?.replaceAll(/\\(.)/g, "$1") ??
    plain?.[2] ??
    fromPath(url);
  const name = given?.split(/[/\\]/).at(-1) ?? "";
  return name === "" ? null : name;
}

function decoded(charset: string, text: string): string | null {
  const bytes = Buffer.from(
    text.replaceAll(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
  return bytes.toString(charset.toLowerCase() === "utf-8" ? "utf8" : "latin1");
}

function fromPath(url: string): string | null {
  const last = new URL(url).pathname.split("/").at(-1) ?? "";
  return /\.[A-Za-z0-9]{1,8}$/.test(last) ? (decoded("utf-8", last) ?? last) : null;
}
