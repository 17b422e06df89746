import { Text } from "@mantine/core";
import type { Run } from "../parts/answers.ts";
import { useNow } from "../parts/now.ts";
import { formatDuration } from "../parts/time.tsx";
import styles from "./run-duration.module.css";
import { readTimeline, splitDuration } from "./run-timeline.ts";

/** The time from the trigger to the end, or until now, and how it was spent. */
export function DurationSplit({ of: run }: { readonly of: Run }) {
  const timeline = readTimeline(run, useNow());
  const parts = splitDuration(timeline).filter(({ ms }) => ms > 0);
  return (
    <div>
      <Text size="xs" c="dimmed">
        Duration
      </Text>
      <Text size="sm" fw={600}>
        {formatDuration(timeline.toMs - timeline.fromMs)}
      </Text>
      <div className={styles["bar"]} aria-hidden="true">
        {parts.map(({ name, kind, ms }) => (
          <span key={name} className={styles["part"]} data-kind={kind} style={{ flexGrow: ms }} />
        ))}
      </div>
      <ul className={styles["legend"]}>
        {parts.map(({ name, kind, ms }) => (
          <li key={name}>
            <span className={styles["key"]} data-kind={kind} aria-hidden="true" />
            {name} {formatDuration(ms)}
          </li>
        ))}
      </ul>
    </div>
  );
}
