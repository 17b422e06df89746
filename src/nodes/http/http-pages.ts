import { limits } from "#domain/limits.ts";
import type { RecordBatches } from "#domain/record.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import type { HttpConfig } from "./http-config.ts";
import { exchange, type RequestContext } from "./http-exchange.ts";
import type { PreparedRequest } from "./http-request.ts";
import { prepareNodeRequest } from "./http-submit.ts";
import { exchangeUntil } from "./http-until.ts";
import { reportMissing } from "#nodes/parse/missing-records.ts";
import { firstPage, leadTo, nextPage, type PageAt } from "./next-page.ts";
import { PageRepeats } from "./page-repeats.ts";
import { readPageVariables } from "./page-variables.ts";
import { readPage } from "./read-page.ts";

/** The records of every page, page by page. Throws NodeFailure if there are more than `max_pages`. */
export async function* recordsOfPages(
  context: NodeContext,
  config: HttpConfig,
  asked: RequestContext,
): RecordBatches {
  const { paginate } = config;
  const pagesMax = paginate?.max_pages ?? limits.pagesMax;
  const repeats = paginate === undefined ? null : new PageRepeats();
  const requestAt = requestsOf(context, config, asked);
  let at = firstPage(paginate);
  for (let number = 1; ; number += 1) {
    const place = `${asked.place}${paginate === undefined ? "" : `, page ${number}`}`;
    // `until` applies to the first page: after it, the target's work is done.
    const send = number === 1 ? exchangeUntil : exchange;
    const response = await send(context, config, await requestAt(at), { place, seen: asked.seen });
    // Later pages may be empty: most kinds of pagination end with an empty page.
    const missing = number === 1 ? reportMissing(context, config, place) : undefined;
    const variables = { ...asked.seen, ...at.variables };
    const page = await readPage(context, config, response, { place, variables, missing });
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
    context.log("page", { page: number, status: response.status, records });
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
  const rendersEachPage = readPageVariables(config.request, config.paginate).length > 0;
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
