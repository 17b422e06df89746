import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { RUN_STATUS_NAMES } from "#domain/labels/states.ts";
import styles from "./run-chart.module.css";

/** The parts of a bar, from bottom to top. */
const OUTCOMES = ["completed", "running", "queued", "cancelled", "failed"] as const;
const BAR = { width: 20, gap: 6, height: 120 } as const;

/** The runs that were triggered in an hour or on a day. */
export type RunBar = { readonly at: string } & Readonly<Record<(typeof OUTCOMES)[number], number>>;

const sumOf = (bar: RunBar): number => OUTCOMES.reduce((sum, outcome) => sum + bar[outcome], 0);

/** Runs by the time at which they were triggered. The table below it has the numbers, for readers who can't see the bars. */
export function RunChart(props: {
  readonly bars: readonly RunBar[];
  /** What a bar stands for. */
  readonly unit: "Hour" | "Day";
  readonly nameOf: (at: string) => string;
  /** Whether the page has the numbers elsewhere. */
  readonly hasOwnTable?: boolean;
  readonly isTall?: boolean;
}) {
  const { bars, nameOf } = props;
  const most = Math.max(1, ...bars.map(sumOf));
  const total = bars.reduce((sum, bar) => sum + sumOf(bar), 0);
  const failed = bars.reduce((sum, bar) => sum + bar.failed, 0);
  const step = BAR.width + BAR.gap;
  const outcomes = OUTCOMES.filter((outcome) => bars.some((bar) => bar[outcome] > 0));
  return (
    <figure className={styles["figure"]} data-tall={props.isTall}>
      <Group justify="space-between" mb="sm" component="figcaption">
        <Text size="sm">
          {total} {total === 1 ? "run" : "runs"}, {failed} failed
        </Text>
        <Group gap="md" aria-hidden="true">
          {outcomes.map((outcome) => (
            <span key={outcome} className={styles["key"]} data-outcome={outcome}>
              {RUN_STATUS_NAMES[outcome]}
            </span>
          ))}
        </Group>
      </Group>
      <Plot
        top={String(most)}
        middle={most % 2 === 0 ? String(most / 2) : ""}
        times={[bars[0], bars[Math.floor(bars.length / 2)], bars.at(-1)].map((bar) => bar && nameOf(bar.at))}
      >
        <svg
          className={styles["chart"]}
          viewBox={`0 0 ${bars.length * step} ${BAR.height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {bars.map((bar, index) => (
            <OneBar key={bar.at} bar={bar} name={nameOf(bar.at)} x={index * step} most={most} />
          ))}
        </svg>
      </Plot>
      {props.hasOwnTable !== true && (
        <details className={styles["details"]}>
          <summary>Show as a table</summary>
          <BarTable bars={bars.filter((bar) => sumOf(bar) > 0)} unit={props.unit} nameOf={nameOf} />
        </details>
      )}
    </figure>
  );
}

/** A chart between its axes: how much is on top and half way up, and its first time, its middle, and its last one. */
export const Plot = (props: {
  readonly top: string;
  readonly middle: string;
  readonly times: readonly (string | undefined)[];
  readonly children: ReactNode;
}) => (
  <div className={styles["plot"]}>
    <div className={styles["scale"]} aria-hidden="true">
      {[props.top, props.middle, "0"].map((name, index) => (
        <span key={index}>{name}</span>
      ))}
    </div>
    {props.children}
    <div className={styles["times"]} aria-hidden="true">
      {props.times.map((name, index) => (
        <span key={index}>{name}</span>
      ))}
    </div>
  </div>
);

function OneBar(props: {
  readonly bar: RunBar;
  readonly name: string;
  readonly x: number;
  readonly most: number;
}) {
  const { bar, x, most } = props;
  const parts = OUTCOMES.filter((outcome) => bar[outcome] > 0);
  const heightOf = (outcome: (typeof OUTCOMES)[number]): number => (bar[outcome] / most) * BAR.height;
  const topOf = (part: number): number =>
    BAR.height - parts.slice(0, part + 1).reduce((sum, outcome) => sum + heightOf(outcome), 0);
  return (
    <g>
      <title>{`${props.name}: ${parts.map((outcome) => `${bar[outcome]} ${RUN_STATUS_NAMES[outcome].toLowerCase()}`).join(", ") || "no runs"}`}</title>
      <rect className={styles["floor"]} x={x} y={BAR.height - 1} width={BAR.width} height={1} />
      {parts.map((outcome, part) => (
        <rect
          key={outcome}
          className={styles["bar"]}
          data-outcome={outcome}
          x={x}
          y={topOf(part)}
          width={BAR.width}
          height={heightOf(outcome)}
        />
      ))}
    </g>
  );
}

function BarTable(props: {
  readonly bars: readonly RunBar[];
  readonly unit: string;
  readonly nameOf: (at: string) => string;
}) {
  return (
    <table className={styles["table"]}>
      <thead>
        <tr>
          <th scope="col">{props.unit}</th>
          {OUTCOMES.map((outcome) => (
            <th key={outcome} scope="col">
              {RUN_STATUS_NAMES[outcome]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.bars.map((bar) => (
          <tr key={bar.at}>
            <th scope="row">{props.nameOf(bar.at)}</th>
            {OUTCOMES.map((outcome) => (
              <td key={outcome}>{bar[outcome]}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
