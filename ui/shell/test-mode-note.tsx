import { Box, Button, Group, Text } from "@mantine/core";
import { isTestMode, switchMode } from "../api/mode.ts";
import { useSignedIn } from "../api/queries.ts";
import { Note } from "../parts/note.tsx";

/** docs/test-mode.md: above every page, so that nobody takes what tests have made for real. */
export function TestModeNote() {
  const { accounts } = useSignedIn();
  if (!isTestMode) return null;
  return (
    <Box mb="md">
      <Note tone="waiting" title="TEST MODE">
        <Group justify="space-between">
          <Text size="sm">
            {accounts?.length === 0
              ? "No account has keys of test mode yet: latchkey keys create --account NAME --test."
              : "You see what keys of test mode have made, and nothing else."}
          </Text>
          <Button variant="default" size="xs" onClick={switchMode}>
            Leave test mode
          </Button>
        </Group>
      </Note>
    </Box>
  );
}
