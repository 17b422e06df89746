import { createHash, type Hash } from "node:crypto";
import type { DataRecord } from "#domain/record.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** What leads from one page to the next: its document says which. `asked`: what asks for it. */
export type PageLead =
  | { readonly kind: "cursor"; readonly value: string; readonly asked: string }
  | { readonly kind: "number"; readonly asked: string }
  | { readonly kind: "address"; readonly url: string };

/** Records of a page that are compared: enough to tell two pages apart, and little work for a long one. */
const COMPARED_MAX = 1_000;

/**
 * Notices that a target goes round in a circle: most often it does not read the parameter of the pages, and gives the first page forever.
 * A cursor alone may stay the same while the target counts on (Elasticsearch's scroll does), and a page may be empty before
 * the last one: so a cursor is the same page again when its records are the same, too.
 */
export class PageRepeats {
  /** Digests of what was given, with the number of the page that gave it. */
  readonly #seen = new Map<string, number>();
  #previous: string | null = null;
  #records: Hash = createHash("sha256");
  #compared = 0;
  #count = 0;

  /** Of the page that is being read. */
  add(batch: readonly DataRecord[]): void {
    this.#count += batch.length;
    for (const { data } of batch) {
      if (this.#compared === COMPARED_MAX) return;
      this.#compared += 1;
      this.#records.update(JSON.stringify(data)).update("\n");
    }
  }

  /** The page is read, and there is a next one. Throws NodeFailure when it was there before. */
  endPage(number: number, lead: PageLead, place: string): void {
    const count = this.#count;
    const digest = this.#records.update(String(count)).digest("base64");
    const previous = this.#previous;
    this.#previous = digest;
    this.#records = createHash("sha256");
    [this.#compared, this.#count] = [0, 0];
    if (lead.kind === "number") {
      if (digest !== previous) return;
      // A page without records is the last one, unless the target says that there are more.
      throw new NodeFailure(
        count === 0
          ? `${place} has no records, as page ${number - 1}, and paginate.while is true for both.`
          : `${place} has the records of page ${number - 1} again: does the target read ${lead.asked}?`,
      );
    }
    const key = lead.kind === "address" ? `a ${lead.url}` : `c ${lead.value} ${digest}`;
    const name = createHash("sha256").update(key).digest("base64");
    const first = this.#seen.get(name);
    if (first !== undefined)
      throw new NodeFailure(
        lead.kind === "address"
          ? `${place}: the next page is the one that page ${first} named already.`
          : `${place} gave the cursor and the records of page ${first} again: does the target read ${lead.asked}?`,
      );
    this.#seen.set(name, number);
  }
}
