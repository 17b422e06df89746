import type { OutboundResponse } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import { batchOf, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { NodeFailure, type Flow, type NodeContext } from "#nodes/define-node.ts";
import type { HttpConfig } from "./http-config.ts";
import { exchange, type RequestContext } from "./http-exchange.ts";
import type { PreparedRequest } from "./http-request.ts";
import { prepareNodeRequest } from "./http-submit.ts";
import { exchangeUntil } from "./http-until.ts";
import { reportMissing } from "#nodes/parse/missing-records.ts";
import { firstPage, leadTo, nextPage, type PageAt } from "./next-page.ts";
import { PageRepeats } from "./page-repeats.ts";
import { readPageVariables } from "./page-variables.ts";
import { readPage, type Page } from "./read-page.ts";
import { requireRecords } from "./require-records.ts";

/** The records of the node's request, or of its pages. Those of a single small answer are all there. Throws NodeFailure. */
export async function recordsOfRequest(
  context: NodeContext,
  config: HttpConfig,
  asked: RequestContext,
): Promise<Extract<Flow, { kind: "records" }>> {
  const only = config.paginate === undefined ? await askPage(context, config, asked, 1) : null;
  const batches = only?.page.batches;
  if (only !== null && Array.isArray(batches) && batches.length <= 1) {
    const [whole = []] = batches as readonly (readonly DataRecord[])[];
    noteRecords(context, 1, only.response, whole.length);
    requireRecords(config, whole.length);
    return { kind: "records", batches: batchOf(whole), whole };
  }
  return { kind: "records", batches: enough(config, recordsOfPages(context, config, asked, only)) };
}

async function* enough(config: HttpConfig, batches: RecordBatches): RecordBatches {
  let total = 0;
  for await (const batch of batches) {
    total += batch.length;
    yield batch;
  }
  requireRecords(config, total);
}

/** A page that was asked for, and its answer. */
interface AskedPage {
  readonly place: string;
  readonly response: OutboundResponse;
  readonly page: Page;
}

async function askPage(
  context: NodeContext,
  config: HttpConfig,
  asked: RequestContext,
  number: number,
  at = firstPage(config.paginate),
  requestAt = requestsOf(context, config, asked),
): Promise<AskedPage> {
  const place = config.paginate === undefined ? asked.place : `${asked.place}, page ${number}`;
  // `until` applies to the first page: after it, the target's work is done.
  const send = number === 1 ? exchangeUntil : exchange;
  const response = await send(context, config, await requestAt(at), { place, seen: asked.seen });
  // Later pages may be empty: most kinds of pagination end with an empty page.
  const missing = number === 1 ? reportMissing(context, config, place) : undefined;
  const variables = { ...asked.seen, ...at.variables };
  return { place, response, page: await readPage(context, config, response, { place, variables, missing }) };
}

const noteRecords = (
  context: NodeContext,
  page: number,
  { status }: OutboundResponse,
  records: number,
): void => context.log("page", { page, status, records });

/** The records of every page, page by page. `first`: if it was asked for. Throws NodeFailure if there are more than `max_pages`. */
export async function* recordsOfPages(
  context: NodeContext,
  config: HttpConfig,
  asked: RequestContext,
  first: AskedPage | null = null,
): RecordBatches {
  const { paginate } = config;
  const pagesMax = paginate?.max_pages ?? limits.pagesMax;
  const repeats = paginate === undefined ? null : new PageRepeats();
  const requestAt = requestsOf(context, config, asked);
  let at = firstPage(paginate);
  for (let number = 1; ; number += 1) {
    const known = number === 1 ? first : null;
    const { place, response, page } = known ?? (await askPage(context, config, asked, number, at, requestAt));
    let records = 0;
    try {
      for await (const batch of page.batches) {
        records += batch.length;
        repeats?.add(batch);
        yield batch;
      }
    } finally {
      page.release();
    }
    noteRecords(context, number, response, records);
    if (paginate === undefined) return;
    const { lead, isMore } = page;
    const next = nextPage(paginate, at, number + 1, { response, records, lead, isMore, place });
    if (next === null) return;
    repeats?.endPage(number, leadTo(next, paginate), place);
    if (number === pagesMax)
      throw new NodeFailure(
        `${config.for_each === undefined ? "There" : `${place}: there`} are more pages than max_pages (${pagesMax}) allows.`,
      );
    at = next;
  }
}

/** Creates the request for a page. Its templates are rendered once, unless they contain the page's variables. */
function requestsOf(
  context: NodeContext,
  config: HttpConfig,
  asked: RequestContext,
): (at: PageAt) => Promise<PreparedRequest> {
  const { scope } = asked;
  const { paginate } = config;
  const rendersEachPage = paginate !== undefined && readPageVariables(config.request, paginate).length > 0;
  let once: PreparedRequest | null = null;
  return async (at) => {
    if (rendersEachPage || once === null)
      once = await prepareNodeRequest(context, config, {
        ...asked,
        scope: { ...scope, variables: { ...scope.variables, ...at.variables } },
      });
    return pageRequest(once, at);
  };
}

function pageRequest(request: PreparedRequest, at: PageAt): PreparedRequest {
  if (at.url !== null) return { ...request, url: at.url, query: [] };
  const own = new Set(at.pairs.map(([name]) => name));
  return { ...request, query: [...request.query.filter(([name]) => !own.has(name)), ...at.pairs] };
}
