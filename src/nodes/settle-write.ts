import type { OutboundRequest } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { NodeFailure, type KnownWrite, type NodeContext } from "./define-node.ts";

/** A write whose outcome may be unknown. */
export interface UncertainWrite {
  readonly ordinal: number;
  /** For messages. */
  readonly place: string;
  /** The output for a write without an answer, which was looked up or decided by the operator. */
  readonly whenFound: Json;
  /** Looks up whether it happened; null: the node has no lookup. */
  readonly lookUp: (() => Promise<boolean>) | null;
  readonly onUnknown: "review" | "fail" | undefined;
}

/** The outcome of a write: its output, or the fact that the operator must decide. */
export type Written = { readonly gave: Json } | "in_doubt";

/** What is known of a write from an earlier attempt. `not_there`: it did not happen, so it may be done now. Throws NodeFailure. */
export async function settleKnown(
  context: NodeContext,
  write: UncertainWrite,
  known: KnownWrite | undefined,
  lost: { readonly why: string; readonly request: () => Promise<OutboundRequest | null> },
): Promise<Written | "not_there"> {
  // Null: its answer was lost, and the operator said that it happened.
  if (known?.status === "done") return { gave: known.outcome ?? write.whenFound };
  if (known?.status === "refused") throw new NodeFailure(`${write.place} was already refused by the target.`);
  if (known?.status !== "in_doubt") return "not_there";
  return await settleWrite(context, write, { why: lost.why, request: await lost.request() });
}

/** Resolves an uncertain write: looks it up, or leaves it to the operator. Throws NodeFailure. */
export async function settleWrite(
  context: NodeContext,
  { ordinal, place, whenFound, lookUp, onUnknown }: UncertainWrite,
  { why, request }: { readonly why: string; readonly request: OutboundRequest | null },
): Promise<Written | "not_there"> {
  if (lookUp !== null) {
    if (!(await lookUp())) {
      await context.writes.ruleOut(ordinal);
      return "not_there";
    }
    await context.writes.finish(ordinal, whenFound);
    return { gave: whenFound };
  }
  await context.writes.doubt(ordinal, why, request);
  if (onUnknown === "fail")
    throw new NodeFailure(`${place} may have happened: ${why}. The node has \`on_unknown: fail\`.`);
  return "in_doubt";
}
