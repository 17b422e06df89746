import type { ConfigPath } from "./config-problem.ts";

/** Which step of a browser a run's failure names. */
export interface FailedStep {
  /** The node that has the step; null: a login has it. */
  readonly node: string | null;
  /** The strategy that has the step; null: a node has it. */
  readonly strategy: string | null;
  /** As the message has it: `steps[1].steps[0]`. */
  readonly place: string;
  /** In its node or login: `["steps", 1, "steps", 0]`. */
  readonly path: ConfigPath;
}

const STEP = /^(?:Node ([\w-]+)|([\w-]+): login):? ((?:verify\.)?steps(?:\[\d+\]|\.[a-z_]+)+) \(/;

/** Reads the step from the message of a failed run; null: it names none. */
export function readFailedStep(message: string | null): FailedStep | null {
  const [, node = null, strategy = null, place] = STEP.exec(message ?? "") ?? [];
  if (place === undefined) return null;
  const parts = place.split(/[.[\]]+/).filter((part) => part !== "");
  return { node, strategy, place, path: parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part)) };
}

/** The step's place in its whole document. Null: the document has no such node. */
export function pathInDocument({ node, path }: FailedStep, document: { readonly [key: string]: unknown }) {
  if (node === null) return ["login", ...path];
  const nodes = Array.isArray(document["nodes"]) ? (document["nodes"] as { readonly id?: unknown }[]) : [];
  const index = nodes.findIndex(({ id }) => id === node);
  return index < 0 ? null : ["nodes", index, ...path];
}
