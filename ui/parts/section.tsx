import { Group, Paper, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";

/** A section of a page with a heading. */
export function Section(props: {
  readonly title: string;
  readonly children: ReactNode;
  readonly actions?: ReactNode;
  /** Without a card around it, because its content has its own. */
  readonly isBare?: boolean;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="section">
      <Group justify="space-between" mb="sm" gap="sm">
        <Title order={2} id={id}>
          {props.title}
        </Title>
        {props.actions}
      </Group>
      {props.isBare === true ? (
        props.children
      ) : (
        <Paper withBorder radius="lg" p="md" className="fill">
          {props.children}
        </Paper>
      )}
    </section>
  );
}
