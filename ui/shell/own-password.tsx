import { Button, Stack, Text } from "@mantine/core";
import { endSession } from "../api/queries.ts";
import { PasswordForm } from "../parts/password-form.tsx";

/** For an operator with a generated password, which others have seen. */
export function OwnPassword() {
  return (
    <Stack gap="md">
      <Text size="sm">
        Your password was generated for you, and others may have seen it. Choose your own before you continue.
      </Text>
      <PasswordForm />
      <Button variant="subtle" onClick={() => void endSession()}>
        Sign out
      </Button>
    </Stack>
  );
}
