import { extractAll } from "#answers/extract.ts";
import { buildSubmit } from "#answers/submit.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { valueOf } from "#nodes/records/expression-value.ts";
import type { HttpConfig } from "./http-config.ts";
import { exchange, type RequestContext, type Subject } from "./http-exchange.ts";
import { prepareRequest, type PreparedRequest } from "./http-request.ts";

const fail = (message: string): NodeFailure => new NodeFailure(`${message}.`);

/** The request of the node or, with `submit`, of the form, whose page is requested again each time. Throws NodeFailure. */
export async function prepareNodeRequest(
  context: NodeContext,
  { request, submit, max_bytes, throttle }: HttpConfig,
  { scope, seen, place }: RequestContext,
): Promise<PreparedRequest> {
  const prepared = await prepareRequest(context, request, scope);
  if (submit === undefined) return prepared;
  const page: HttpConfig = {
    request,
    effect: "read",
    ...(max_bytes !== undefined && { max_bytes }),
    ...(throttle !== undefined && { throttle }),
  };
  const response = await exchange(context, page, prepared, { place: `${place}: the page of the form`, seen });
  const tools = {
    signal: context.signal,
    place,
    fail,
    render: async (template: JsonObject) => await context.expressions.render(template, scope),
    isStrict: true,
  };
  return { ...(await buildSubmit(tools, submit, [response])), query: [] };
}

/** The values that `extract` finds in an answer. Throws NodeFailure when a required value is missing. */
export async function extractFields(
  { expressions, signal }: NodeContext,
  extract: NonNullable<HttpConfig["extract"]>,
  response: OutboundResponse,
  { place, seen }: Subject,
): Promise<JsonObject> {
  const tools = {
    signal,
    place,
    fail,
    failMissing: fail,
    evaluate: async (source: string, root: object, at: string) => {
      const [outcomes] = await expressions.evaluateBatch([source], [{ ...root, variables: seen }]);
      return valueOf(outcomes?.[0], at);
    },
  };
  const found = await extractAll(tools, Object.entries(extract), response);
  // Every record has every field, like the columns of a table.
  return Object.fromEntries(Object.keys(extract).map((name) => [name, found[name] ?? null]));
}
