import * as cheerio from "cheerio";
import { REPLY_CHARACTERS_MAX, type MarkupJob, type ParseReply } from "./parse-jobs.ts";

/**
 * Parses a page and reads its rows. Slow for hostile pages (seconds for 64 kB): only the parse thread may call it. In XML a
 * DOCTYPE is skipped: an entity that it defines stays the text `&name;`, and nothing outside is ever read.
 */
export function parseMarkup(job: MarkupJob): ParseReply {
  const page = cheerio.load(job.text, { xml: job.format === "xml" });
  if (job.format === "xml" && page.root().children().length === 0) return { problem: "has no element" };
  const names = job.columns.map(({ name }) => name);
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
    if (characters > REPLY_CHARACTERS_MAX)
      return { problem: `gives more than ${REPLY_CHARACTERS_MAX} characters` };
  }
  return { names, rows };
}
