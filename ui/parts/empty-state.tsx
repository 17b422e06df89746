import { Code, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** Shown in place of an empty list: what it would contain, and the next step. */
export function EmptyState(props: {
  readonly title: string;
  readonly children: ReactNode;
  /** The command to type. */
  readonly command?: string;
}) {
  return (
    <Paper withBorder p="xl" radius="lg">
      <Stack align="center" gap="xs" maw={520} mx="auto" ta="center">
        <Title order={2}>{props.title}</Title>
        <Text size="sm" c="dimmed" component="div">
          {props.children}
        </Text>
        {props.command !== undefined && (
          <Code block tabIndex={0} ta="left" mt="xs" maw="100%">
            {props.command}
          </Code>
        )}
      </Stack>
    </Paper>
  );
}
