import { Text } from "@mantine/core";
import { Differences } from "../parts/differences.tsx";
import type { ReviewDrafts } from "./review-drafts.ts";
import styles from "./review-record.module.css";

/** The most changes that are listed. */
const SHOWN_MAX = 200;

/** What an approval changes: each edited field with its value before and after, and the excluded records. */
export function ReviewChanges({ drafts }: { readonly drafts: ReviewDrafts }) {
  const changes = drafts.changes();
  const excluded = drafts.exclusions();
  if (changes.length + excluded.length === 0) return null;
  return (
    // Can also be scrolled by keyboard.
    <section className={styles["changes"]} aria-label="Changes" tabIndex={0}>
      {changes.length > 0 && (
        <Differences
          of={changes.slice(0, SHOWN_MAX).map(({ ordinal, field, before, after }) => ({
            path: `Record ${ordinal + 1}: ${field}`,
            before,
            after,
          }))}
        />
      )}
      {changes.length > SHOWN_MAX && <Text size="sm">And {changes.length - SHOWN_MAX} more changes.</Text>}
      {excluded.length > 0 && (
        <Text size="sm" mt="xs">
          Excluded: {excluded.length === 1 ? "record" : "records"}{" "}
          {excluded
            .slice(0, SHOWN_MAX)
            .map((ordinal) => ordinal + 1)
            .join(", ")}
          {excluded.length > SHOWN_MAX && ` and ${excluded.length - SHOWN_MAX} more`}
        </Text>
      )}
    </section>
  );
}
