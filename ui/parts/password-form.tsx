import { Button, Group, PasswordInput, Stack } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { changePassword, listOwnSessions } from "../api/operations.ts";
import { keyOf, setMe, useOperation } from "../api/queries.ts";
import { FailureNote } from "./failure-note.tsx";

/** The current password and the new one. */
export function PasswordForm({ onDone }: { readonly onDone?: () => void }) {
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const changing = useOperation(changePassword, {
    changes: [keyOf(listOwnSessions)],
    onDone: (me) => {
      setMe(me);
      setCurrent("");
      setNext("");
      onDone?.();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    changing.mutate({ body: { current_password: current, new_password: next } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {changing.failure && <FailureNote error={changing.failure} />}
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          required
          value={current}
          onChange={(event) => setCurrent(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show the current password" }}
        />
        <PasswordInput
          label="New password"
          description="12 to 256 characters"
          autoComplete="new-password"
          required
          value={next}
          onChange={(event) => setNext(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show the new password" }}
        />
        <Group>
          <Button type="submit" variant="default" loading={changing.isPending}>
            Change password
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
