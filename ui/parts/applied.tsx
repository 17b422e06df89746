import { Text } from "@mantine/core";
import { Time } from "./time.tsx";

/** When a version was applied, and by whom. */
export function Applied({
  of,
}: {
  readonly of: { readonly applied_at: string; readonly applied_by: string | null };
}) {
  return (
    <>
      <Time at={of.applied_at} />
      <Text size="xs" c="dimmed">
        by {of.applied_by ?? "the command line, or a token"}
      </Text>
    </>
  );
}
