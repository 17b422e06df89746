import { createRequire } from "node:module";
import type * as Cheerio from "cheerio/slim";

const load = createRequire(import.meta.url);

/** Whether cheerio accepts the selector. */
export function isSelector(css: string): boolean {
  // Loaded here, because only documents with selectors need it, and all processes and threads import this module.
  const cheerio = load("cheerio/slim") as typeof Cheerio;
  try {
    cheerio.load("<p></p>").root().find(css);
    return true;
  } catch {
    return false;
  }
}
