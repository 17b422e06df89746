import { NotJson, type Scope } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { reserveJsonMemory } from "#domain/json-room.ts";
import { readRoot } from "#domain/read-json.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { mediaType, responseText } from "./http-exchange.ts";

/** Processes the JSON of an answer, as the root of expressions, once there is room for it in the memory budget. */
export async function withJson<T>(
  { signal }: NodeContext,
  response: OutboundResponse,
  place: string,
  work: (root: Pick<Scope, "root" | "rootText">) => Promise<T>,
  charset?: string,
): Promise<T> {
  const fail = (problem: string): NodeFailure =>
    new NodeFailure(
      `${place}: the response (${mediaType(response.headers.get("content-type"))}) ${problem}.`,
    );
  const release = await reserveJsonMemory(response.body, signal);
  try {
    const body = readRoot(responseText(response, place, charset));
    if (!body.ok) throw fail(body.problem);
    return await work(body.root);
  } catch (error) {
    throw error instanceof NotJson ? fail(error.message) : error;
  } finally {
    release();
  }
}
