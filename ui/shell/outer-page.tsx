import { Center, Paper, Stack, Title } from "@mantine/core";
import { useEffect, type ReactNode } from "react";
import { Brand } from "./brand.tsx";

/** A page before the dashboard itself: one card in the middle. */
export function OuterPage({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Latchkey`;
  }, [title]);
  return (
    <Center component="main" mih="100vh" p="md" bg="var(--page)">
      <Stack w="100%" maw={400} gap="lg">
        <Brand />
        <Paper withBorder p="xl" radius="lg" shadow="xs">
          <Stack gap="md">
            <Title order={1}>{title}</Title>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Center>
  );
}
