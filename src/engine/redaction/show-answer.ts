import { readPage } from "#answers/page-reader.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";
import { decodeText } from "#outbound/read-body.ts";
import { HIDDEN, withoutTokens, type AnswerOf } from "./hide-tokens.ts";
import type { Redactor } from "./redact.ts";

/** How much of an answer is read, and how much is shown. */
const READ_BYTES = 65_536;
const LOOKED_AT_CHARACTERS = 4_000;
const SHOWN_CHARACTERS = 500;
const TITLE_CHARACTERS = 200;
const NAMES_SHOWN = 20;
const READ_PAGE_MS = 10_000;

/** The beginning of an answer, for operators. `redact` removes known secrets; other likely secrets are hidden. */
export async function showAnswer(
  response: OutboundResponse,
  redact: Redactor,
  of: AnswerOf,
): Promise<ShownAnswer> {
  const type = response.headers.get("content-type");
  const bytes = await firstBytes(response);
  // Redact before cutting, so that no secret is split.
  const text = isText(bytes) ? await redact.body(decodeText(bytes, type)) : "";
  const isPage = /\bx?html\b/i.test(type ?? "") || /^\s*<(!doctype html|html)\b/i.test(text);
  const page = isPage ? await readTitleAndText(text) : null;
  const shown = (given: string, characters: number): string =>
    cut(withoutTokens(redact.message(given.slice(0, LOOKED_AT_CHARACTERS)), of), characters);
  const location =
    response.status >= 300 && response.status <= 399 ? response.headers.get("location") : undefined;
  return {
    status: response.status,
    address: shownAddress(response.url, response.url, redact, of),
    leads_to: location === undefined ? null : shownAddress(location, response.url, redact, of),
    content_type: type === undefined ? null : shown(type, 100),
    title: page?.title ? shown(page.title, TITLE_CHARACTERS) : null,
    begins: shown(page === null ? text.trim() : page.text, SHOWN_CHARACTERS),
  };
}

/** The visible text: no markup, hidden values or scripts. Empty if the page can't be read in time. */
async function readTitleAndText(html: string): Promise<{ readonly title: string; readonly text: string }> {
  const queries = [{ kind: "css", css: "title", attr: null }, { kind: "visible" }] as const;
  // The run may have been aborted: its answer is shown anyway.
  const answers = await readPage(html, queries, AbortSignal.timeout(READ_PAGE_MS)).catch(() => null);
  const [title, text] = answers ?? [];
  return { title: (title ?? "").replace(/\s+/g, " "), text: text ?? "" };
}

async function firstBytes({ body, kept }: OutboundResponse): Promise<Uint8Array> {
  if (kept === null) return body.subarray(0, READ_BYTES);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of kept.open()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= READ_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, READ_BYTES);
}

const isText = (bytes: Uint8Array): boolean => !bytes.subarray(0, LOOKED_AT_CHARACTERS).includes(0);

/** Query values are omitted: they may be anything. */
function shownAddress(address: string, base: string, redact: Redactor, of: AnswerOf): string {
  const url = URL.parse(address, base);
  if (url === null) return "(no address)";
  const names = [...new Set(url.searchParams.keys())].slice(0, NAMES_SHOWN);
  const query = names.length === 0 ? "" : `?${names.map((name) => `${name}=${HIDDEN}`).join("&")}`;
  const path = redact.message(url.pathname.replace(/;.*/, ""));
  const segments = path.split("/").map((segment) => withoutTokens(segment, of));
  return cut(redact.message(url.origin) + segments.join("/") + redact.message(query), SHOWN_CHARACTERS);
}

/** Cuts between characters, never inside one. */
function cut(text: string, characters: number): string {
  const all = Array.from(text);
  return all.length <= characters ? text : `${all.slice(0, characters).join("")}${HIDDEN}`;
}
