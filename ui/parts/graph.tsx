import dagre from "@dagrejs/dagre";
import { useElementSize } from "@mantine/hooks";
import type { readBlueprint } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import styles from "./graph.module.css";

export type Graph = AnswerOf<typeof readBlueprint>["graph"];
type GraphNode = Graph["nodes"][number];

const NODE = { width: 176, height: 64 };
const MARGIN = 12;

/** What a run did with a node. */
export interface NodeOfRun {
  /** Its state, as text and as a tone. */
  readonly state: string;
  readonly tone: string;
  /** Records of its output, and those with errors; null: not known. */
  readonly records: number | null;
  readonly errors: number | null;
}

interface GraphProps {
  readonly graph: Graph;
  /** By node; undefined: the Blueprint alone. */
  readonly run?: ReadonlyMap<string, NodeOfRun>;
  readonly selected?: string | null;
  readonly onSelect?: (node: string) => void;
}

interface Placed {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly { readonly node: GraphNode; readonly left: number; readonly top: number }[];
  readonly edges: readonly {
    readonly key: string;
    readonly from: string;
    readonly kind: string;
    readonly path: string;
    readonly middle: { readonly x: number; readonly y: number };
  }[];
}

/** From left to right, or downwards. */
function place({ nodes, edges }: Graph, direction: "LR" | "TB"): Placed {
  const drawing = new dagre.graphlib.Graph({ multigraph: true });
  // The gaps have room for the counts on the edges.
  drawing.setGraph({ rankdir: direction, nodesep: 24, ranksep: 44, marginx: MARGIN, marginy: MARGIN });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) drawing.setNode(id, { ...NODE });
  const known = new Set(nodes.map(({ id }) => id));
  const drawn = edges.filter(({ from, to }) => known.has(from) && known.has(to));
  for (const { from, to, kind } of drawn) drawing.setEdge(from, to, {}, kind);
  dagre.layout(drawing);
  const { width = 0, height = 0 } = drawing.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: nodes.map((node) => {
      const { x, y } = drawing.node(node.id) as { x: number; y: number };
      return { node, left: x - NODE.width / 2, top: y - NODE.height / 2 };
    }),
    edges: drawn.map(({ from, to, kind }) => {
      const { points } = drawing.edge(from, to, kind) as { points: readonly { x: number; y: number }[] };
      const path = points.map(
        ({ x, y }, index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`,
      );
      return {
        key: `${from} ${kind} ${to}`,
        from,
        kind,
        path: path.join(""),
        middle: points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 },
      };
    }),
  };
}

/**
 * A Blueprint's nodes in the order of their dependencies: from left to right if there is room, otherwise downwards, never smaller.
 * With a run, each node shows its state, each edge its records, and a node is a button.
 */
export function GraphDrawing({ graph, run, selected = null, onSelect }: GraphProps) {
  const { ref, width } = useElementSize();
  const across = place(graph, "LR");
  const placed = width > 0 && across.width > width ? place(graph, "TB") : across;
  return (
    <>
      <section ref={ref} className={styles["scroller"]} tabIndex={0} aria-label="Graph of the Blueprint">
        <div className={styles["drawing"]} style={{ width: placed.width, height: placed.height }}>
          <Edges of={placed} run={run} />
          {placed.nodes.map(({ node, left, top }) => (
            <div
              key={node.id}
              className={styles["place"]}
              style={{ left, top, width: NODE.width, height: NODE.height }}
            >
              <NodeBox
                node={node}
                of={run?.get(node.id)}
                isSelected={selected === node.id}
                onSelect={onSelect}
              />
            </div>
          ))}
        </div>
      </section>
      {!onSelect && <HeardNodes of={graph} />}
    </>
  );
}

/** For screen readers: the same as a list. */
const HeardNodes = ({ of: graph }: { readonly of: Graph }) => (
  <ul className={styles["heard"]}>
    {graph.nodes.map(({ id, type, when, steps }) => (
      <li key={id}>
        {id}, {type}
        {steps.length === 0 ? "" : ` of ${steps.join(", ")}`}
        {sourcesOf(graph, id)}
        {when === null ? "" : `, when ${when}`}
      </li>
    ))}
  </ul>
);

function Edges({
  of: { width, height, edges },
  run,
}: {
  readonly of: Placed;
  readonly run: GraphProps["run"];
}) {
  return (
    <svg width={width} height={height} aria-hidden="true">
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0L8 4L0 8z" className={styles["arrow"]} />
        </marker>
      </defs>
      {edges.map(({ key, kind, path }) => (
        <path key={key} d={path} data-kind={kind} className={styles["edge"]} markerEnd="url(#arrow)" />
      ))}
      {edges.map(({ key, from, middle }) => {
        const records = run?.get(from)?.records ?? null;
        return records === null ? null : (
          <text key={key} x={middle.x} y={middle.y} className={styles["count"]}>
            {records.toLocaleString("en")}
          </text>
        );
      })}
    </svg>
  );
}

function NodeBox(props: {
  readonly node: GraphNode;
  readonly of: NodeOfRun | undefined;
  readonly isSelected: boolean;
  readonly onSelect: GraphProps["onSelect"];
}) {
  const { node, of, onSelect } = props;
  const content = (
    <>
      <span className={styles["name"]}>{node.name ?? node.id}</span>
      <span className={styles["type"]}>{aboutOf(node)}</span>
      {of && (
        <span className={styles["state"]} data-tone={of.tone}>
          {of.state}
          {of.errors !== null && of.errors > 0 && (
            <span className={styles["wrong"]}>, {of.errors.toLocaleString("en")} with errors</span>
          )}
        </span>
      )}
    </>
  );
  const common = {
    className: styles["node"],
    title: [node.name ?? node.id, ...node.steps].join("\n"),
    "data-type": node.type,
    "data-tone": of?.tone,
  };
  if (!onSelect)
    return (
      <div {...common} aria-hidden="true">
        {content}
      </div>
    );
  return (
    <button type="button" {...common} aria-pressed={props.isSelected} onClick={() => onSelect(node.id)}>
      {content}
    </button>
  );
}

/** A node's type, its credential, and whether it may be skipped; for a loop, its steps. */
function aboutOf({ type, credential, steps, when }: GraphNode): string {
  if (steps.length > 0) return `${type}: ${steps.join(", ")}`;
  return [type, credential && `as ${credential}`, when !== null && "conditional"].filter(Boolean).join(" · ");
}

function sourcesOf({ edges }: Graph, id: string): string {
  const sources = edges.filter(({ to }) => to === id).map(({ from }) => from);
  return sources.length === 0 ? "" : `, reads ${sources.join(" and ")}`;
}
