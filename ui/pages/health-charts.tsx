import { Group, SimpleGrid, Text } from "@mantine/core";
import type { readBlueprintHealth } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import { useNow } from "../parts/now.ts";
import { Section } from "../parts/section.tsx";
import { formatDuration } from "../parts/time.tsx";
import { Plot, RunChart } from "./run-chart.tsx";
import styles from "./run-chart.module.css";

type Day = AnswerOf<typeof readBlueprintHealth>["by_day"][number];

const DAYS = 30;
const DAY_MS = 86_400_000;
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const dayOf = (at: string): string => day.format(Date.parse(at));

/** How the last 30 days went, as curves. The table below them has the numbers. */
export function HealthCharts({ of }: { readonly of: readonly Day[] }) {
  const today = Math.floor(useNow() / DAY_MS) * DAY_MS;
  const known = new Map(of.map((each) => [each.at.slice(0, 10), each]));
  const days = Array.from({ length: DAYS }, (_, index) => {
    const at = new Date(today - (DAYS - 1 - index) * DAY_MS).toISOString();
    return { at, counts: known.get(at.slice(0, 10)) };
  });
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
      <Section title="Runs by day">
        <RunChart
          unit="Day"
          nameOf={dayOf}
          hasOwnTable
          bars={days.map(({ at, counts }) => ({
            at,
            completed: counts?.completed ?? 0,
            failed: counts?.failed ?? 0,
            cancelled: counts?.cancelled ?? 0,
            queued: 0,
            running: counts ? counts.runs - counts.completed - counts.failed - counts.cancelled : 0,
          }))}
        />
      </Section>
      <Section title="Duration by day">
        <DurationChart
          days={days.map(({ at, counts }) => ({
            at,
            median: counts?.p50_ms ?? null,
            most: counts?.p95_ms ?? null,
          }))}
        />
      </Section>
    </SimpleGrid>
  );
}

interface Durations {
  readonly at: string;
  /** Null: no run completed on that day. */
  readonly median: number | null;
  readonly most: number | null;
}

const HEIGHT = 120;
const STEP = 26;
const NAMES = { median: "Median", most: "95th percentile" } as const;

function DurationChart({ days }: { readonly days: readonly Durations[] }) {
  const top = Math.max(1, ...days.map(({ most }) => most ?? 0));
  return (
    <figure className={styles["figure"]}>
      <Group justify="space-between" mb="sm" component="figcaption">
        <Text size="sm">of completed runs</Text>
        <Group gap="md" aria-hidden="true">
          {Object.entries(NAMES).map(([line, name]) => (
            <span key={line} className={styles["key"]} data-line={line}>
              {name}
            </span>
          ))}
        </Group>
      </Group>
      <Plot
        top={formatDuration(top)}
        middle={formatDuration(top / 2)}
        times={[days[0], days[Math.floor(days.length / 2)], days.at(-1)].map(
          (each) => each && dayOf(each.at),
        )}
      >
        <svg
          className={styles["chart"]}
          viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <rect className={styles["floor"]} x={0} y={HEIGHT - 1} width={days.length * STEP} height={1} />
          {(["most", "median"] as const).map((line) => (
            <Line key={line} line={line} days={days} top={top} />
          ))}
        </svg>
      </Plot>
    </figure>
  );
}

/** A curve with its points: a single day would be no line. Days without a completed run are left out. */
function Line(props: {
  readonly line: "median" | "most";
  readonly days: readonly Durations[];
  readonly top: number;
}) {
  const { line, days, top } = props;
  const points = days.flatMap((each, index) => {
    const ms = each[line];
    return ms === null ? [] : [[(index + 0.5) * STEP, (HEIGHT - 6) * (1 - ms / top) + 3] as const];
  });
  return (
    <g className={styles["line"]} data-line={line}>
      <polyline points={points.map((point) => point.join(",")).join(" ")} vectorEffect="non-scaling-stroke" />
      {points.map(([x, y]) => (
        // A line without length is a dot that the stretched picture keeps round.
        <line key={x} x1={x} y1={y} x2={x} y2={y} vectorEffect="non-scaling-stroke" />
      ))}
    </g>
  );
}
