import { Group, Text } from "@mantine/core";

export function Brand() {
  return (
    <Group gap="xs" wrap="nowrap">
      <svg width="28" height="28" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="#0b7285" />
        <path
          transform="translate(3.6 2) scale(.87)"
          fill="none"
          stroke="#fff"
          strokeWidth="2.6"
          strokeLinecap="round"
          strokeLinejoin="round"
          d="M13.2 18.8a5 5 0 1 1 0-.1zM13 15.5l10.5-7M20 10.8l2.2 3.2M23.4 8.6l1.8 2.6"
        />
      </svg>
      <Text fw={700} size="lg">
        Latchkey
      </Text>
    </Group>
  );
}
