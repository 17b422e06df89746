import { Button, Stack, Text } from "@mantine/core";
import { endSession } from "../api/queries.ts";
import { PasswordForm } from "../parts/password-form.tsx";

/** Of somebody whose password was made for them: others have seen it. */
export function OwnPassword() {
  return (
    <Stack gap="md">
      <Text size="sm">
        Your password was generated for you, and others may have seen it. Choose your own; nothing else can be
        done before.
      </Text>
      <PasswordForm />
      <Button variant="subtle" onClick={() => void endSession()}>
        Sign out
      </Button>
    </Stack>
  );
}
