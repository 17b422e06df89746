import { REVIEW_STATE_NAMES, STEP_STATE_NAMES } from "#domain/labels/states.ts";
import { Mark } from "../parts/run-status.tsx";
import type { NodeState } from "./run-nodes.ts";
import type { RunNode } from "./run-node.ts";

type NodeMarkText = readonly [tone: string, text: string];

const MARKS: Readonly<Record<NodeState, NodeMarkText>> = {
  done: ["good", STEP_STATE_NAMES.done],
  failed: ["bad", STEP_STATE_NAMES.failed],
  started: ["running", STEP_STATE_NAMES.started],
  skipped: ["quiet", STEP_STATE_NAMES.skipped],
  stopped: ["quiet", STEP_STATE_NAMES.stopped],
  waiting: ["waiting", REVIEW_STATE_NAMES.open],
  pending: ["quiet", STEP_STATE_NAMES.pending],
  unreached: ["quiet", STEP_STATE_NAMES.unreached],
  unknown: ["quiet", STEP_STATE_NAMES.unknown],
};

/** A node's state, as a tone and as text. */
export function markOf({ state, step }: RunNode): NodeMarkText {
  // The run completed, but the result is suspicious.
  if (state === "done" && step?.records_total === 0 && (step.records_usual ?? 0) > 0)
    return ["waiting", "Unexpectedly empty"];
  return MARKS[state];
}

export function NodeMark({ node }: { readonly node: RunNode }) {
  const [tone, text] = markOf(node);
  return <Mark tone={tone}>{text}</Mark>;
}
