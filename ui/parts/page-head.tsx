import { Group, Text, Title } from "@mantine/core";
import { useEffect, useRef, type ReactNode } from "react";

let hasNavigated = false;

/** From the first navigation on, a new page takes the focus, like a page that is loaded. */
export function noteNavigation(): void {
  hasNavigated = true;
}

/** A page's title, description, and actions for the page as a whole. Every page begins with one. */
export function PageHead(props: {
  readonly title: string;
  /** The window's title; default: the page's title. */
  readonly windowTitle?: string;
  readonly about?: ReactNode;
  readonly children?: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const windowTitle = props.windowTitle ?? props.title;
  useEffect(() => {
    document.title = `${windowTitle} · Latchkey`;
  }, [windowTitle]);
  useEffect(() => {
    if (hasNavigated) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <Group justify="space-between" align="flex-start" gap="md" mb="lg">
      <div className="page-title">
        <Title order={1} ref={heading} tabIndex={-1}>
          {props.title}
        </Title>
        {props.about !== undefined && (
          <Text c="dimmed" size="sm" component="div">
            {props.about}
          </Text>
        )}
      </div>
      {props.children !== undefined && <Group gap="xs">{props.children}</Group>}
    </Group>
  );
}
