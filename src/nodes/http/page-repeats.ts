import { createHash, type Hash } from "node:crypto";
import type { DataRecord } from "#domain/record.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** How one page leads to the next, according to the document. `asked`: the parameter or variable that requests it. */
export type PageLead =
  | { readonly kind: "cursor"; readonly value: string; readonly asked: string }
  | { readonly kind: "number"; readonly asked: string }
  | { readonly kind: "address"; readonly url: string };

/** The number of records per page that are compared: enough to distinguish two pages, and little work for a long one. */
const COMPARED_MAX = 1_000;

/**
 * Detects that a target repeats its pages: most often it ignores the page parameter and returns the first page again and again. A
 * cursor may stay the same although the target advances (as with Elasticsearch's scroll), and an empty page may precede the last
 * one. So a repeated cursor counts only if its records are the same, too.
 */
export class PageRepeats {
  /** Digests of the pages, each with the number of the page. */
  readonly #seen = new Map<string, number>();
  #previous: string | null = null;
  #records: Hash = createHash("sha256");
  #compared = 0;
  #count = 0;

  /** The digest of the page that is being read. */
  add(batch: readonly DataRecord[]): void {
    this.#count += batch.length;
    for (const { data } of batch) {
      if (this.#compared === COMPARED_MAX) return;
      this.#compared += 1;
      this.#records.update(JSON.stringify(data)).update("\n");
    }
  }

  /** Called when the page was read and there is a next one. Throws NodeFailure if the page is a repetition. */
  endPage(number: number, lead: PageLead, place: string): void {
    const count = this.#count;
    const digest = this.#records.update(String(count)).digest("base64");
    const previous = this.#previous;
    this.#previous = digest;
    this.#records = createHash("sha256");
    [this.#compared, this.#count] = [0, 0];
    if (lead.kind === "number") {
      if (digest !== previous) return;
      // An empty page is the last one, unless the target says that there are more.
      throw new NodeFailure(
        count === 0
          ? `${place} has no records, like page ${number - 1}, and paginate.while is true for both.`
          : `${place} has the same records as page ${number - 1}: check that the target supports ${lead.asked}.`,
      );
    }
    const key = lead.kind === "address" ? `a ${lead.url}` : `c ${lead.value} ${digest}`;
    const name = createHash("sha256").update(key).digest("base64");
    const first = this.#seen.get(name);
    if (first !== undefined)
      throw new NodeFailure(
        lead.kind === "address"
          ? `${place} has the same next page as page ${first}.`
          : `${place} has the same cursor and records as page ${first}: check that the target supports ${lead.asked}.`,
      );
    this.#seen.set(name, number);
  }
}
