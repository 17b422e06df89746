import dagre from "@dagrejs/dagre";
import { Box } from "@mantine/core";
import type { readBlueprint } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import styles from "./graph.module.css";

export type Graph = AnswerOf<typeof readBlueprint>["graph"];

const NODE = { width: 172, height: 58 };
const MARGIN = 12;
const SHOWN_CHARACTERS = 18;

interface Placed {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly {
    readonly node: Graph["nodes"][number];
    readonly x: number;
    readonly y: number;
  }[];
  readonly edges: readonly { readonly key: string; readonly kind: string; readonly path: string }[];
}

function place({ nodes, edges }: Graph): Placed {
  const drawing = new dagre.graphlib.Graph({ multigraph: true });
  drawing.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 34, marginx: MARGIN, marginy: MARGIN });
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
      return { node, x: x - NODE.width / 2, y: y - NODE.height / 2 };
    }),
    edges: drawn.map(({ from, to, kind }) => {
      const { points } = drawing.edge(from, to, kind) as { points: readonly { x: number; y: number }[] };
      const path = points.map(
        ({ x, y }, index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`,
      );
      return { key: `${from} ${kind} ${to}`, kind, path: path.join("") };
    }),
  };
}

const shown = (text: string): string =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS - 1)}…` : text;

/** A Blueprint's nodes from left to right, in the order of their dependencies. For screen readers, it is also a list. */
export function GraphDrawing({ graph }: { readonly graph: Graph }) {
  const placed = place(graph);
  return (
    <>
      <Box
        component="section"
        className={styles["scroller"] ?? ""}
        tabIndex={0}
        aria-label="Graph of the Blueprint"
      >
        <svg width={placed.width} height={placed.height} aria-hidden="true">
          <defs>
            <marker
              id="arrow"
              viewBox="0 0 8 8"
              refX="8"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              orient="auto"
            >
              <path d="M0 0L8 4L0 8z" className={styles["arrow"]} />
            </marker>
          </defs>
          {placed.edges.map(({ key, kind, path }) => (
            <path key={key} d={path} data-kind={kind} className={styles["edge"]} markerEnd="url(#arrow)" />
          ))}
          {placed.nodes.map(({ node, x, y }) => (
            <g
              key={node.id}
              transform={`translate(${x} ${y})`}
              className={styles["node"]}
              data-type={node.type}
            >
              <title>{[node.name ?? node.id, ...node.steps].join("\n")}</title>
              <rect width={NODE.width} height={NODE.height} rx="10" />
              <text x="14" y="24" className={styles["name"]}>
                {shown(node.name ?? node.id)}
              </text>
              <text x="14" y="43" className={styles["type"]}>
                {shown(aboutOf(node))}
              </text>
              {node.when !== null && <circle cx={NODE.width - 14} cy="14" r="4" className={styles["when"]} />}
            </g>
          ))}
        </svg>
      </Box>
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
    </>
  );
}

/** A node's type and credential; for a loop, its steps. */
function aboutOf({ type, credential, steps }: Graph["nodes"][number]): string {
  if (steps.length > 0) return `${type}: ${steps.join(", ")}`;
  return [type, credential && `as ${credential}`].filter(Boolean).join(" · ");
}

function sourcesOf({ edges }: Graph, id: string): string {
  const sources = edges.filter(({ to }) => to === id).map(({ from }) => from);
  return sources.length === 0 ? "" : `, reads ${sources.join(" and ")}`;
}
