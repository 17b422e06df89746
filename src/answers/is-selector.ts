import { load } from "cheerio/slim";

/** Whether cheerio accepts the selector. */
export function isSelector(css: string): boolean {
  try {
    load("<p></p>").root().find(css);
    return true;
  } catch {
    return false;
  }
}
