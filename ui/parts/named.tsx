import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A cell with a name, and further identifying details below it. */
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
