import { Group, Text } from "@mantine/core";
import { RUN_STATUS_NAMES } from "#domain/labels/states.ts";
import type { Overview } from "../parts/answers.ts";
import styles from "./hour-chart.module.css";

type Hour = Overview["hours"][number];

/** The parts of a bar, from bottom to top. */
const OUTCOMES = ["completed", "running", "queued", "cancelled", "failed"] as const;
const BAR = { width: 20, gap: 6, height: 120 } as const;
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const sumOf = (hour: Hour): number => OUTCOMES.reduce((sum, outcome) => sum + hour[outcome], 0);

/** Runs by the hour in which they were triggered. The table below it has the numbers, for readers who can't see the bars. */
export function HourChart({ hours }: { readonly hours: readonly Hour[] }) {
  const most = Math.max(1, ...hours.map(sumOf));
  const total = hours.reduce((sum, hour) => sum + sumOf(hour), 0);
  const failed = hours.reduce((sum, hour) => sum + hour.failed, 0);
  const step = BAR.width + BAR.gap;
  return (
    <figure className={styles["figure"]}>
      <Group justify="space-between" mb="sm" component="figcaption">
        <Text size="sm">
          {total} {total === 1 ? "run" : "runs"}, {failed} failed
        </Text>
        <Group gap="md" aria-hidden="true">
          {OUTCOMES.map((outcome) => (
            <span key={outcome} className={styles["key"]} data-outcome={outcome}>
              {RUN_STATUS_NAMES[outcome]}
            </span>
          ))}
        </Group>
      </Group>
      <svg
        className={styles["chart"]}
        viewBox={`0 0 ${hours.length * step} ${BAR.height}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {hours.map((hour, index) => (
          <HourBar key={hour.at} hour={hour} x={index * step} most={most} />
        ))}
      </svg>
      <Group justify="space-between" aria-hidden="true">
        {[hours[0], hours[Math.floor(hours.length / 2)], hours.at(-1)].map((hour) => (
          <Text key={hour?.at} size="xs" c="dimmed">
            {hour && clock.format(Date.parse(hour.at))}
          </Text>
        ))}
      </Group>
      <details className={styles["details"]}>
        <summary>Show as a table</summary>
        <HourTable hours={hours.filter((hour) => sumOf(hour) > 0)} />
      </details>
    </figure>
  );
}

function HourBar({ hour, x, most }: { readonly hour: Hour; readonly x: number; readonly most: number }) {
  const parts = OUTCOMES.filter((outcome) => hour[outcome] > 0);
  const heightOf = (outcome: (typeof OUTCOMES)[number]): number => (hour[outcome] / most) * BAR.height;
  const topOf = (part: number): number =>
    BAR.height - parts.slice(0, part + 1).reduce((sum, outcome) => sum + heightOf(outcome), 0);
  return (
    <g>
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

function HourTable({ hours }: { readonly hours: readonly Hour[] }) {
  return (
    <table className={styles["table"]}>
      <thead>
        <tr>
          <th scope="col">Hour</th>
          {OUTCOMES.map((outcome) => (
            <th key={outcome} scope="col">
              {RUN_STATUS_NAMES[outcome]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {hours.map((hour) => (
          <tr key={hour.at}>
            <th scope="row">{clock.format(Date.parse(hour.at))}</th>
            {OUTCOMES.map((outcome) => (
              <td key={outcome}>{hour[outcome]}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
