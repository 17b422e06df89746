import { SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { readRunGraph } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { NodeOfRun } from "../parts/graph.tsx";
import type { Run, RunGraphData } from "../parts/answers.ts";
import { Loading } from "../parts/loading.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { markOf } from "./node-mark.tsx";
import { RunNodePanel } from "./run-node-panel.tsx";
import { listRunNodes } from "./run-nodes.ts";
import { RunTimeline } from "./run-timeline-rows.tsx";
import styles from "./run-steps.module.css";
import type { RunNode } from "./run-node.ts";

const GraphDrawing = lazy(async () => ({ default: (await import("../parts/graph.tsx")).GraphDrawing }));

/** Where the panel is beside the nodes instead of among them. */
const WIDE = "(min-width: 75em)";

/** The run's nodes, as a timeline or as the Blueprint's graph. Both share the selected node, which is in the URL. */
export function RunSteps({ run }: { readonly run: Run }) {
  const graph = useRead(readRunGraph, { params: { runId: run.id } }, { enabled: run.blueprint !== null });
  if (run.blueprint === null) return <Steps run={run} graph={undefined} />;
  return <Reading of={graph}>{(data) => <Steps run={run} graph={data} />}</Reading>;
}

/** The selected node; until the operator selects one, the failed one, even if it fails while the page is open. */
export function useSelectedNode(run: Run) {
  const [search, setSearch] = useSearchParams();
  const failed = run.failed_node ?? run.steps.find(({ status }) => status === "failed")?.node ?? null;
  const chosen = search.get("node");
  const set = (name: string, value: string): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        after.set(name, value);
        return after;
      },
      { replace: true },
    );
  return {
    selected: chosen === null ? failed : chosen,
    /** Selects a node, or none if it is selected already. */
    select: (node: string): void => set("node", (chosen ?? failed) === node ? "" : node),
    view: search.get("view") === "graph" ? "graph" : "timeline",
    setView: (view: string): void => set("view", view),
  } as const;
}

function Steps({ run, graph }: { readonly run: Run; readonly graph: RunGraphData | undefined }) {
  const { selected, select, view, setView } = useSelectedNode(run);
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const nodes = listRunNodes(run, graph);
  const node = nodes.find(({ id }) => id === selected);
  const isGraph = view === "graph" && graph !== undefined;
  const panel = node && <RunNodePanel key={node.id} run={run} node={node} nodes={nodes} />;
  return (
    <Section
      title="Steps"
      isBare
      actions={
        // A test login has no graph.
        graph && (
          <SegmentedControl
            aria-label="How steps are shown"
            value={view}
            onChange={setView}
            data={[
              { value: "timeline", label: "Timeline" },
              { value: "graph", label: "Graph" },
            ]}
          />
        )
      }
    >
      <div className={styles["both"]} data-selected={node !== undefined && isWide}>
        {isGraph ? (
          <div className={styles["card"]}>
            <Suspense fallback={<Loading what="Loading the graph" />}>
              <GraphDrawing graph={graph} run={drawnNodes(nodes)} selected={selected} onSelect={select} />
            </Suspense>
          </div>
        ) : (
          <RunTimeline run={run} nodes={nodes} selected={selected} onSelect={select}>
            {isWide ? null : panel}
          </RunTimeline>
        )}
        {(isWide || isGraph) && panel && <div className={styles["side"]}>{panel}</div>}
      </div>
    </Section>
  );
}

const drawnNodes = (nodes: readonly RunNode[]): ReadonlyMap<string, NodeOfRun> =>
  new Map(
    nodes.map((node) => {
      const [tone, state] = markOf(node);
      return [node.id, { tone, state, records: node.records, errors: node.errors }];
    }),
  );
