import * as cheerio from "cheerio";
import { quote, shorten } from "#domain/config-problem.ts";
import { REPLY_CHARACTERS_MAX, type MarkupJob, type ParseReply } from "./parse-jobs.ts";

/**
 * Parses a page and reads its rows. Slow for hostile pages (seconds for 64 kB), so only the parse thread may call it. In XML, a
 * DOCTYPE is skipped: a reference to one of its entities remains the text `&name;`, and external entities are never read.
 */
export function parseMarkup(job: MarkupJob): ParseReply {
  const page = cheerio.load(job.text, { xml: job.format === "xml" });
  if (job.format === "xml" && page.root().children().length === 0) return { problem: "has no element" };
  const names = job.columns.map(({ name }) => name);
  let characters = 0;
  const rows: (readonly (string | null)[])[] = [];
  const area = job.within === null ? null : page.root().find(job.within);
  for (const element of area === null ? page.root().find(job.rows) : area.find(job.rows)) {
    const row = page(element);
    const values = job.columns.map(({ css, attribute }) => {
      const cell = css === null ? row : row.find(css).first();
      if (cell.length === 0) return null;
      return attribute === null ? cell.text().trim() : (cell.attr(attribute) ?? null);
    });
    rows.push(values);
    for (const value of values) characters += value?.length ?? 0;
    if (characters > REPLY_CHARACTERS_MAX)
      return { problem: `produces more than ${REPLY_CHARACTERS_MAX} characters` };
  }
  const missing = rows.length > 0 ? null : describeMissing(page, job, (area?.length ?? 0) > 0);
  return { names, rows, ...(missing !== null && { missing }) };
}

const SHOWN_CHARACTERS_MAX = 100;

/** Null: the page says itself that it has no rows. In XML, an empty list has no elements at all. */
function describeMissing(
  page: cheerio.CheerioAPI,
  { format, rows, within, empty }: MarkupJob,
  areaExists: boolean,
): string | null {
  const { css, text } = empty ?? {};
  if (css !== undefined && page.root().find(css).length > 0) return null;
  if (text !== undefined && page.root().text().includes(text)) return null;
  if (within === null ? format === "xml" : areaExists) return null;
  const title = page("title").first().text().trim();
  const what =
    within === null
      ? `no element matches \`rows\` (${quote(rows)}), and nothing indicates an empty list (\`within\`, \`empty\`)`
      : `no element matches \`within\` (${quote(within)})`;
  // Completely or not at all: the redactor must be able to find complete values.
  return title === "" || title.length > SHOWN_CHARACTERS_MAX
    ? what
    : `${what}; the page's title is "${shorten(title, SHOWN_CHARACTERS_MAX)}"`;
}
