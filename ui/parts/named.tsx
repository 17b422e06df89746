import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** In a table: what it is called, and below it what else tells it apart. */
export function Named({ name, below }: { readonly name: ReactNode; readonly below: ReactNode }) {
  return (
    <>
      <Text size="sm" fw={600}>
        {name}
      </Text>
      <Text size="xs" c="dimmed">
        {below}
      </Text>
    </>
  );
}
