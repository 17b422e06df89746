import { parentPort, workerData } from "node:worker_threads";
import * as cheerio from "cheerio";

/** One column of a row: the first element that `css` finds in it (null: the row itself), its attribute or its text. */
export interface HtmlColumn {
  readonly name: string;
  readonly css: string | null;
  readonly attribute: string | null;
}

export interface HtmlJob {
  readonly html: string;
  readonly rows: string;
  readonly columns: readonly HtmlColumn[];
}

/** Per row the columns' values; null where there is no such element or attribute. */
export type HtmlReply =
  | { readonly rows: readonly (readonly (string | null)[])[] }
  | { readonly problem: string };

export const HTML_THREAD = "html-thread";
const VALUE_CHARACTERS_MAX = 50_000_000;

/** Parses a page and reads its rows. Slow for hostile pages (seconds for 64 kB): only the thread below may call it. */
function readRows(job: HtmlJob): HtmlReply {
  const page = cheerio.load(job.html);
  let characters = 0;
  const rows: (readonly (string | null)[])[] = [];
  for (const element of page.root().find(job.rows)) {
    const row = page(element);
    const values = job.columns.map(({ css, attribute }) => {
      const cell = css === null ? row : row.find(css).first();
      if (cell.length === 0) return null;
      return attribute === null ? cell.text().trim() : (cell.attr(attribute) ?? null);
    });
    rows.push(values);
    for (const value of values) characters += value?.length ?? 0;
    if (characters > VALUE_CHARACTERS_MAX)
      return { problem: `gives more than ${VALUE_CHARACTERS_MAX} characters` };
  }
  return { rows };
}

function answer(job: HtmlJob): HtmlReply {
  try {
    return readRows(job);
  } catch (error) {
    if (error instanceof RangeError) return { problem: "is nested too deeply" };
    return { problem: "could not be read" };
  }
}

if (workerData === HTML_THREAD)
  parentPort?.on("message", (job: HtmlJob) => parentPort?.postMessage(answer(job)));
