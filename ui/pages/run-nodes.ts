/** The parts of a Blueprint's graph that a run's nodes are read from. */
export interface NodeGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly { readonly from: string; readonly to: string; readonly kind: "flow" | "reads" }[];
}

interface GraphNode {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly ref_key: string | null;
  readonly gives: "records" | "value" | "results";
  readonly steps: readonly string[];
}

interface Recorded {
  readonly node: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly records_total: number | null;
  readonly records_valid: number | null;
}

/** A node that has an entry in the journal. */
export interface RecordedStep extends Recorded {
  readonly status: "started" | "done" | "failed" | "skipped";
}

interface RecordedNode extends Recorded {
  readonly status: "done" | "skipped" | "stopped";
}

/** The parts of a run that its nodes are read from. */
export interface RecordedRun<Step extends RecordedStep> {
  readonly status: string;
  readonly ended_at: string | null;
  readonly purged_at: string | null;
  /** When it began to execute; null: it has not. */
  readonly started_at: string | null;
  /** When it began to wait without a worker; null: it executes, if it has begun and not ended. */
  readonly parked_at: string | null;
  readonly failed_node: string | null;
  readonly steps: readonly Step[];
  readonly nodes: readonly RecordedNode[];
  readonly reviews: readonly { readonly node: string; readonly status: string }[];
}

/** `waiting`: for a reviewer. `pending`: not begun yet. `unreached`: its run ended first. `unknown`: it was not recorded. */
export type NodeState =
  | "done"
  | "failed"
  | "started"
  | "skipped"
  | "stopped"
  | "waiting"
  | "pending"
  | "unreached"
  | "unknown";

/** A node of a run, with what is known of it. */
export interface NodeOf<Step extends RecordedStep> {
  readonly id: string;
  readonly name: string;
  /** Null: it is not in the Blueprint, as a step of a test login. */
  readonly type: string | null;
  /** For an input: its key in the trigger. */
  readonly refKey: string | null;
  /** The ids of a loop's steps. */
  readonly inner: readonly string[];
  readonly state: NodeState;
  /** Null: not known. */
  readonly fromMs: number | null;
  /** Null: not known, or not ended. */
  readonly toMs: number | null;
  readonly recordsIn: number | null;
  readonly records: number | null;
  readonly errors: number | null;
  /** The nodes that it reads. */
  readonly sources: readonly string[];
  readonly step: Step | undefined;
}

const NO_GRAPH: NodeGraph = { nodes: [], edges: [] };

/** The steps of a login, all nodes of a run in the order of their dependencies, then other steps that are in no graph. */
export function listRunNodes<Step extends RecordedStep>(
  run: RecordedRun<Step>,
  graph: NodeGraph = NO_GRAPH,
): readonly NodeOf<Step>[] {
  const known = new Map(graph.nodes.map((node) => [node.id, node]));
  const others = run.steps.filter(({ node }) => !known.has(node));
  const isOfLogin = ({ node }: Step): boolean => node.startsWith("login ");
  const inNoGraph = (steps: readonly Step[]) =>
    steps.map(({ node: id }) =>
      recordedNode(run, { id, name: null, type: null, ref_key: null, steps: [] }, []),
    );
  const nodes = [
    ...inNoGraph(others.filter(isOfLogin)),
    ...inOrder(graph).map((node) => recordedNode(run, node, sourcesOf(graph, node.id))),
    ...inNoGraph(others.filter((step) => !isOfLogin(step))),
  ];
  markRunning(run, nodes);
  const outputs = new Map(nodes.map(({ id, records }) => [id, records]));
  const giving = new Set(graph.nodes.filter(({ gives }) => gives === "records").map(({ id }) => id));
  return nodes.map((node) => ({ ...node, recordsIn: sumOf(node.sources, giving, outputs) }));
}

/** Nodes that ask a target, and take their time. */
const ASKING: ReadonlySet<string | null> = new Set(["browser", "http"]);

/**
 * A node that only reads is recorded when it has ended, with those before it that ask nobody. Nodes are executed one after the other: while
 * nothing else is in progress, the first one that is not recorded is running, and so is what it reads.
 */
function markRunning<Step extends RecordedStep>(run: RecordedRun<Step>, nodes: NodeOf<Step>[]): void {
  if (run.started_at === null || run.ended_at !== null || run.parked_at !== null) return;
  if (nodes.some(({ state }) => state === "started" || state === "waiting")) return;
  const pending = nodes.filter(({ state }) => state === "pending");
  const running = pending.find(({ type }) => ASKING.has(type)) ?? pending[0];
  if (running === undefined) return;
  const fromMs = Math.max(Date.parse(run.started_at), ...nodes.map(({ toMs }) => toMs ?? 0));
  const marked = new Set([running.id]);
  for (const id of marked)
    for (const [at, node] of nodes.entries()) {
      if (node.id !== id || node.state !== "pending") continue;
      nodes[at] = { ...node, state: "started", fromMs };
      for (const source of node.sources) marked.add(source);
    }
}

const sourcesOf = ({ edges }: NodeGraph, id: string): readonly string[] =>
  edges.filter(({ to, kind }) => to === id && kind === "flow").map(({ from }) => from);

/** Null: one of the numbers is not known, or no source gives records. */
function sumOf(
  sources: readonly string[],
  giving: ReadonlySet<string>,
  outputs: ReadonlyMap<string, number | null>,
): number | null {
  const numbers = sources.filter((id) => giving.has(id)).map((id) => outputs.get(id) ?? null);
  if (numbers.length === 0 || numbers.includes(null)) return null;
  return numbers.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** Each node after those that it needs, otherwise as in the document. */
function inOrder({ nodes, edges }: NodeGraph): readonly GraphNode[] {
  const ordered: GraphNode[] = [];
  const left = new Set(nodes);
  while (left.size > 0) {
    const waiting = new Set([...left].map(({ id }) => id));
    const ready = [...left].find(({ id }) => !edges.some(({ from, to }) => to === id && waiting.has(from)));
    // A checked Blueprint has no circles.
    const [next = ready] = ready === undefined ? left : [ready];
    if (next === undefined) break;
    left.delete(next);
    ordered.push(next);
  }
  return ordered;
}

const msOf = (at: string | null | undefined): number | null =>
  at === null || at === undefined ? null : Date.parse(at);

type NamedNode = Pick<GraphNode, "id" | "name" | "steps" | "ref_key"> & { readonly type: string | null };

function recordedNode<Step extends RecordedStep>(
  run: RecordedRun<Step>,
  node: NamedNode,
  sources: readonly string[],
): NodeOf<Step> {
  const step = run.steps.find((each) => each.node === node.id);
  const tally = run.nodes.find((each) => each.node === node.id);
  const recorded = step ?? tally;
  const records = step?.records_total ?? tally?.records_total ?? null;
  const valid = step?.records_valid ?? tally?.records_valid ?? null;
  return {
    id: node.id,
    name: node.name ?? node.id,
    type: node.type,
    refKey: node.ref_key,
    inner: node.steps,
    state: stateOf(run, node.id, step, tally),
    fromMs: msOf(recorded?.started_at),
    toMs: msOf(recorded?.ended_at),
    recordsIn: null,
    records,
    errors: records === null || valid === null ? null : records - valid,
    sources,
    step,
  };
}

function stateOf(
  run: RecordedRun<RecordedStep>,
  id: string,
  step: RecordedStep | undefined,
  tally: RecordedNode | undefined,
): NodeState {
  if (run.failed_node === id) return "failed";
  if (step?.status === "started") {
    if (run.reviews.some(({ node, status }) => node === id && status === "open")) return "waiting";
    return run.ended_at === null ? "started" : "stopped";
  }
  if (step) return step.status;
  // Its reader needed no more of it.
  if (tally) return tally.status === "stopped" && run.status === "completed" ? "done" : tally.status;
  if (run.ended_at === null) return "pending";
  return run.status === "completed" || run.purged_at !== null ? "unknown" : "unreached";
}
