import { Center, Paper, Stack, Text, Title } from "@mantine/core";
import { useEffect, type ReactNode } from "react";
import { Brand } from "./brand.tsx";

/** A page before the dashboard itself: one card in the middle. */
export function OuterPage(props: {
  readonly title: string;
  readonly about?: string;
  readonly children: ReactNode;
}) {
  const { title, about, children } = props;
  useEffect(() => {
    document.title = `${title} · Latchkey`;
  }, [title]);
  return (
    <Center component="main" mih="100vh" p="md" bg="var(--page)">
      <Stack w="100%" maw={400} gap="lg">
        <Brand />
        <Paper withBorder p="xl" radius="lg" shadow="xs">
          <Stack gap="md">
            <div>
              <Title order={1}>{title}</Title>
              {about !== undefined && (
                <Text size="sm" c="dimmed" className="any-break">
                  {about}
                </Text>
              )}
            </div>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Center>
  );
}
