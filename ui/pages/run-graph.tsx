import "@xyflow/react/dist/style.css";
import { graphlib, layout } from "@dagrejs/dagre";
import { useComputedColorScheme } from "@mantine/core";
import { Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { readRunGraph } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { Run, RunGraphData, RunStep } from "../parts/answers.ts";
import { Reading } from "../parts/reading.tsx";
import styles from "./run-graph.module.css";
import { StepMark } from "./step-mark.tsx";

const SIZE = { width: 200, height: 72 } as const;

interface Drawn extends Record<string, unknown> {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly step: RunStep | undefined;
  readonly run: Run;
  readonly isOpen: boolean;
  readonly onOpen: (node: string | null) => void;
}

interface GraphProps {
  readonly run: Run;
  /** Includes the failed step, even if it was not recorded. */
  readonly steps: readonly RunStep[];
  readonly opened: string | null;
  readonly onOpen: (node: string | null) => void;
}

/** The Blueprint as a graph, from left to right. A node's button opens the details of its step. */
export function RunGraph(props: GraphProps) {
  const graph = useRead(readRunGraph, { params: { runId: props.run.id } });
  const colorMode = useComputedColorScheme("light");
  return (
    <Reading of={graph}>
      {(data) => (
        <div className={styles["box"]}>
          <ReactFlow
            nodes={draw(data, props)}
            edges={data.edges.map(toEdge)}
            nodeTypes={nodeTypes}
            colorMode={colorMode}
            fitView
            minZoom={0.2}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            preventScrolling={false}
            zoomOnScroll={false}
            proOptions={{ hideAttribution: true }}
            aria-label="Graph of the Blueprint"
          />
        </div>
      )}
    </Reading>
  );
}

const toEdge = ({ from, to, kind }: RunGraphData["edges"][number]): Edge => ({
  id: `${from} ${to} ${kind}`,
  source: from,
  target: to,
  // An edge that exists only because of an expression.
  ...(kind === "reads" ? { className: styles["reads"] ?? "" } : {}),
});

function draw(data: RunGraphData, { run, steps, opened, onOpen }: GraphProps): Node<Drawn>[] {
  const plan = new graphlib.Graph();
  plan.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 56 });
  plan.setDefaultEdgeLabel(() => ({}));
  for (const { id } of data.nodes) plan.setNode(id, { ...SIZE });
  for (const { from, to } of data.edges) plan.setEdge(from, to);
  layout(plan);
  return data.nodes.map(({ id, type, name }) => {
    const { x, y } = plan.node(id) as { x: number; y: number };
    const step = steps.find(({ node }) => node === id);
    return {
      id,
      type: "step",
      position: { x: x - SIZE.width / 2, y: y - SIZE.height / 2 },
      ...SIZE,
      data: { id, type, name, step, run, isOpen: opened === id, onOpen },
    };
  });
}

function StepNode({ data }: NodeProps<Node<Drawn>>) {
  return (
    <div className={styles["node"]} data-status={data.step?.status}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className={styles["type"]}>{data.type}</span>
      {data.step ? (
        <button
          type="button"
          className={styles["name"]}
          aria-expanded={data.isOpen}
          onClick={() => data.onOpen(data.isOpen ? null : data.id)}
        >
          {data.name ?? data.id}
        </button>
      ) : (
        <span className={styles["name"]}>{data.name ?? data.id}</span>
      )}
      <span className={styles["state"]}>{data.step && <StepMark step={data.step} run={data.run} />}</span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { step: StepNode };
