/** The main program of the thread that reads pages; see `page-reader.ts`. */
import { parentPort } from "node:worker_threads";
import { load, type CheerioAPI } from "cheerio";
import { RE2JS } from "re2js";
import { must } from "#lib/assert.ts";
import { ownThreadId } from "#lib/thread-priority.ts";
import { readPageForm } from "./page-form.ts";
import type { PageAnswers, PageJob, PageQuery, PageThreadReady } from "./page-reader.ts";

const port = must(parentPort, "the port of a thread");

port.on("message", (job: PageJob) => port.postMessage(readJob(job)));
port.postMessage({ threadId: ownThreadId() } satisfies PageThreadReady);

function readJob({ text, queries }: PageJob): PageAnswers {
  let page: CheerioAPI | null = null;
  return queries.map((query) => {
    if (query.kind === "regex") return firstMatch(text, query);
    if (query.kind === "visible") return visibleText(text);
    page ??= load(text);
    if (query.kind === "form") {
      const form = readPageForm(page, query.css);
      return form === null ? null : JSON.stringify(form);
    }
    const element = page(query.css).first();
    if (element.length === 0) return null;
    return query.attr === null ? element.text().trim() : (element.attr(query.attr) ?? null);
  });
}

/** Elements whose text is separated from that of their neighbours. */
const APART =
  "address, article, aside, blockquote, br, button, caption, dd, details, div, dl, dt, fieldset, figcaption, figure, footer, form, " +
  "h1, h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, option, p, pre, section, summary, table, td, th, tr, ul";

/** The visible text in one line. Parses the page again, because it changes it. */
function visibleText(text: string): string {
  const page = load(text);
  page("head, script, style, template, noscript, svg, textarea, select").remove();
  page(APART).before(" ").after(" ");
  return page.root().text().replace(/\s+/g, " ").trim();
}

function firstMatch(text: string, { regex, group }: Extract<PageQuery, { kind: "regex" }>): string | null {
  const matcher = RE2JS.compile(regex).matcher(text);
  if (!matcher.find()) return null;
  return matcher.group(group ?? Math.min(1, matcher.groupCount())) ?? null;
}
