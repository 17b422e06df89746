import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import styles from "./field-group.module.css";

/** Fields of a long form that belong together, with what they are about beside them on a wide screen. */
export function FieldGroup(props: {
  readonly title: string;
  readonly about?: string;
  readonly children: ReactNode;
}) {
  return (
    <fieldset className={styles["group"]} aria-label={props.title}>
      <div>
        <Text fw={600} aria-hidden="true">
          {props.title}
        </Text>
        {props.about !== undefined && (
          <Text size="sm" c="dimmed">
            {props.about}
          </Text>
        )}
      </div>
      <Stack gap="md">{props.children}</Stack>
    </fieldset>
  );
}
