import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { stepUp } from "../api/operations.ts";
import { endSession, setMe, useOperation } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";

/** Asks for a code after a sign-in at the provider, if our own second factor is required in addition. */
export function GiveCode() {
  const [code, setCode] = useState("");
  const giving = useOperation(stepUp, { changes: [], onDone: setMe });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    giving.mutate({ body: { code } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">Enter the code from your authenticator app, or a recovery code.</Text>
        {giving.failure && <FailureNote error={giving.failure} />}
        <TextInput
          label="Code"
          autoComplete="one-time-code"
          required
          autoFocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Group justify="space-between">
          <Button variant="subtle" onClick={() => void endSession()}>
            Sign out
          </Button>
          <Button type="submit" loading={giving.isPending}>
            Confirm
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
