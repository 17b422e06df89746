import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import styles from "./note.module.css";

/** A note above the other content; `alert`: it has just appeared. */
export function Note(props: {
  readonly tone: "bad" | "waiting" | "good" | "quiet";
  readonly title: string;
  readonly children: ReactNode;
  readonly isAlert?: boolean;
}) {
  return (
    <div
      className={styles["note"]}
      data-tone={props.tone}
      role={props.isAlert === true ? "alert" : undefined}
    >
      <Text fw={600} size="sm" className={styles["title"] ?? ""}>
        {props.title}
      </Text>
      <Text size="sm" component="div" className="any-break">
        {props.children}
      </Text>
    </div>
  );
}
