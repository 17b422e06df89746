import { Text } from "@mantine/core";
import { Fragment, type ReactNode } from "react";
import type { Run } from "../parts/answers.ts";
import { useNow } from "../parts/now.ts";
import { formatDuration } from "../parts/time.tsx";
import { NodeMark } from "./node-mark.tsx";
import { readTimeline, type Interval, type Phase, type Timeline } from "./run-timeline.ts";
import styles from "./run-steps.module.css";
import type { RunNode } from "./run-node.ts";

/** Why no node is shown. */
function explainNoNodes(run: Run): string {
  if (run.purged_at !== null) return "The steps' data was purged.";
  if (run.failure === "login") return "The login failed, so no step started.";
  return run.ended_at === null ? "No step has started yet." : "The run ended before its first step.";
}

/** Queueing, login and all nodes, each at its time within the run. `children`: details of the selected node, below its row. */
export function RunTimeline(props: {
  readonly run: Run;
  readonly nodes: readonly RunNode[];
  readonly selected: string | null;
  readonly onSelect: (node: string) => void;
  readonly children: ReactNode;
}) {
  const { run, nodes, selected } = props;
  const timeline = readTimeline(run, useNow());
  return (
    <div>
      <ol className={styles["steps"]}>
        <li className={styles["heads"]} aria-hidden="true">
          <span>Step</span>
          <span>State</span>
          <span className={styles["counts"]}>Records in → out</span>
          <span className={styles["scale"]}>
            <span>Start</span>
            <span>{formatDuration(timeline.toMs - timeline.fromMs)}</span>
          </span>
          <span className={styles["took"]}>Duration</span>
        </li>
        {timeline.phases.map((phase) => (
          <PhaseRow key={phase.name} phase={phase} timeline={timeline} credentials={run.credentials} />
        ))}
        {nodes.map((node) => (
          <li key={node.id}>
            <NodeRow
              run={run}
              node={node}
              timeline={timeline}
              isSelected={selected === node.id}
              onSelect={() => props.onSelect(node.id)}
            />
            {node.inner.map((id) => (
              <span key={id} className={styles["inner"]}>
                {id}
              </span>
            ))}
            {selected === node.id && props.children}
          </li>
        ))}
      </ol>
      {nodes.length === 0 && (
        <Text size="sm" c="dimmed" mt="sm">
          {explainNoNodes(run)}
        </Text>
      )}
    </div>
  );
}

function PhaseRow(props: {
  readonly phase: Phase;
  readonly timeline: Timeline;
  readonly credentials: Run["credentials"];
}) {
  const { phase, timeline, credentials } = props;
  const slots = phase.kind === "login" ? credentials : [];
  return (
    <Fragment>
      <li className={styles["phase"]}>
        <span>{phase.name}</span>
        <span />
        <span />
        <Bar of={timeline} pieces={[{ ...phase, kind: phase.kind }]} />
        <span className={styles["took"]}>{formatDuration(phase.toMs - phase.fromMs)}</span>
      </li>
      {slots.map(({ slot, name, credential_id: id }) => (
        <li key={slot} className={styles["inner"]}>
          {slot}: {name ?? id}
        </li>
      ))}
    </Fragment>
  );
}

function NodeRow(props: {
  readonly run: Run;
  readonly node: RunNode;
  readonly timeline: Timeline;
  readonly isSelected: boolean;
  readonly onSelect: () => void;
}) {
  const { node, timeline } = props;
  const waits = timeline.waits.filter((wait) => wait.node === node.id);
  const waitedMs = waits.reduce((sum, wait) => sum + wait.toMs - wait.fromMs, 0);
  // A reviewer's wait begins when the review is requested, a run's end ends everything.
  const fromMs = node.fromMs;
  const toMs = fromMs === null ? null : (node.toMs ?? timeline.toMs);
  return (
    <button
      type="button"
      className={styles["step"]}
      aria-expanded={props.isSelected}
      data-state={node.state}
      onClick={props.onSelect}
    >
      <span className={styles["name"]} title={node.name}>
        {node.name}
        {node.type !== null && <span className={styles["type"]}>{node.type}</span>}
      </span>
      <NodeMark node={node} />
      <Counts of={node} />
      <Bar
        of={timeline}
        pieces={[
          ...(fromMs === null || toMs === null ? [] : [{ fromMs, toMs, kind: node.state }]),
          ...waits.map((wait) => ({ ...wait, kind: "waiting" })),
        ]}
      />
      <span className={styles["took"]}>
        {fromMs === null || toMs === null || node.state === "skipped"
          ? "–"
          : formatDuration(Math.max(toMs - fromMs, 0))}
        {waitedMs > 0 && <span className={styles["waited"]}>waiting {formatDuration(waitedMs)}</span>}
      </span>
    </button>
  );
}

const shown = (count: number): string => count.toLocaleString("en");

/** Records in and out, and those with errors. */
function Counts({ of: { recordsIn, records, errors } }: { readonly of: RunNode }) {
  return (
    <span className={styles["counts"]}>
      {records !== null && (
        <>
          {recordsIn !== null && `${shown(recordsIn)} → `}
          {shown(records)}
          {recordsIn === null && (
            <span className={styles["unit"]}> {records === 1 ? "record" : "records"}</span>
          )}
        </>
      )}
      {errors !== null && errors > 0 && <span className={styles["wrong"]}>{shown(errors)} with errors</span>}
    </span>
  );
}

/** The minimum visible width of a bar, in percent. */
const SEEN_MIN = 0.6;

function Bar({
  of: { fromMs, toMs },
  pieces,
}: {
  readonly of: Interval;
  readonly pieces: readonly (Interval & { readonly kind: string })[];
}) {
  const placeOf = (ms: number): number =>
    Math.min(Math.max(((ms - fromMs) / Math.max(toMs - fromMs, 1)) * 100, 0), 100);
  return (
    <span className={styles["bar"]} aria-hidden="true">
      {pieces.map((piece) => {
        const left = Math.min(placeOf(piece.fromMs), 100 - SEEN_MIN);
        const width = Math.max(placeOf(piece.toMs) - left, SEEN_MIN);
        return (
          <span
            key={`${piece.kind} ${piece.fromMs}`}
            className={styles["piece"]}
            data-kind={piece.kind}
            style={{ left: `${left}%`, width: `${width}%` }}
          />
        );
      })}
    </span>
  );
}
