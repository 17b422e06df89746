import { REDACTED } from "#domain/handle-text.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { PageAnswer, PageTape } from "#outbound/browser/tape.ts";
import type { BrowserState } from "#outbound/browser/state.ts";
import type { Redactor } from "#engine/redaction/redact.ts";
import { describeContent, inUtf8, type RecordedBody } from "./recorded-body.ts";

/** One answer to a page of a `browser` node. Nothing of the request but its method and URL. */
export interface RecordedPage {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: RecordedBody;
}

/** What the pages of a recording are answered with, and what their storage has. */
export interface RecordedPages {
  readonly answers: (RecordedPage | null)[];
  /** The storage with which the pages of a slot begin, with its texts redacted: a page may only look whether it is logged in. */
  readonly storage: { [slot: string]: JsonObject };
}

/** Records in the order in which the target answered. `redact` knows every value of the credentials. */
export function recordPages({ answers }: RecordedPages, redact: Redactor): PageTape {
  return {
    record: async ({ method, url, status, headers, body }) => {
      const at = answers.push(null) - 1;
      answers[at] = {
        method,
        url: redact.text(url),
        status,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, redact.text(inUtf8(name, value))]),
        ),
        body: await describeContent(body, headers["content-type"] ?? "", redact),
      };
    },
  };
}

/**
 * Answers by method and URL, in the order of the recording. A page that reads more often than it did then gets the last answer; one
 * that sends something again gets none.
 */
export function replayPages({ answers }: RecordedPages): PageTape {
  const recorded = answers.filter((answer) => answer !== null);
  const left = Map.groupBy(recorded, ({ method, url }) => `${method} ${url}`);
  return {
    answer: (method, url): PageAnswer | null => {
      const queue = left.get(`${method} ${url}`) ?? [];
      const answer = queue.length > 1 || method !== "GET" ? queue.shift() : queue[0];
      if (answer === undefined) return null;
      const { body } = answer;
      const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : Buffer.from(body.base64, "base64");
      return { ...answer, body: bytes };
    },
  };
}

/** The storage of a browser's session without what it says. */
export function blankStorage({ origins, session }: BrowserState): JsonObject {
  const state: BrowserState = {
    cookies: [],
    origins: origins.map(({ origin, localStorage }) => ({
      origin,
      localStorage: localStorage.map(({ name, value }) => ({ name, value: blank(value) })),
    })),
    session: session.map(({ origin, entries }) => ({
      origin,
      entries: entries.map(([name, value]) => [name, blank(value)] as const),
    })),
  };
  return state as unknown as JsonObject;
}

/** A text that is JSON stays JSON: its numbers may say until when a session lasts. */
function blank(text: string): string {
  if (!/^\s*[[{]/.test(text)) return REDACTED;
  try {
    return JSON.stringify(blankValue(JSON.parse(text) as Json));
  } catch {
    return REDACTED;
  }
}

function blankValue(value: Json): Json {
  if (typeof value === "string") return REDACTED;
  if (Array.isArray(value)) return value.map(blankValue);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, blankValue(each)]));
}
