import { Text } from "@mantine/core";

/** What the caller has added for itself. */
export function References({ of }: { readonly of: Readonly<Record<string, string>> | null }) {
  const pairs = Object.entries(of ?? {});
  if (pairs.length === 0) return null;
  return (
    <Text size="xs" c="dimmed" className="any-break">
      {pairs.map(([name, value]) => `${name}: ${value}`).join(", ")}
    </Text>
  );
}
