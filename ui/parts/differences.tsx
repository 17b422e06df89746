import { Text } from "@mantine/core";
import type { readBlueprintVersion } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import styles from "./differences.module.css";

type Difference = AnswerOf<typeof readBlueprintVersion>["differences"][number];

/** The old and the new value of each changed place. */
export function Differences({ of }: { readonly of: readonly Difference[] }) {
  if (of.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No differences.
      </Text>
    );
  return (
    <ul className={styles["places"]}>
      {of.map(({ path, before, after }) => (
        <li key={path}>
          <b>{path}</b>
          {before !== null && <del>{before}</del>}
          {after !== null && <ins>{after}</ins>}
        </li>
      ))}
    </ul>
  );
}
