import { Button, PasswordInput, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { readMe, renewRecoveryCodes } from "../api/operations.ts";
import { keyOf, useOperation, useSignedIn } from "../api/queries.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Note } from "../parts/note.tsx";
import { ShownOnce } from "../parts/shown-once.tsx";

/** How many are left, and new ones in their place. */
export function RecoveryCodes() {
  const { recovery_codes_left: left } = useSignedIn();
  const [isAsking, setIsAsking] = useState(false);
  const [password, setPassword] = useState("");
  const [codes, setCodes] = useState<string | null>(null);
  const close = (): void => {
    setIsAsking(false);
    setPassword("");
  };
  const renewing = useOperation(renewRecoveryCodes, {
    changes: [["me"], keyOf(readMe)],
    onDone: ({ recovery_codes: made }) => {
      close();
      setCodes(made.join("\n"));
    },
  });
  return (
    <Stack gap="md" align="start">
      {left === 0 && (
        <Note tone="waiting" title="0 recovery codes left">
          Without your authenticator app you cannot sign in. Make new codes, and keep them.
        </Note>
      )}
      <Text size="sm">
        An authenticator app is set up.{" "}
        {left > 0 && (left === 1 ? "1 recovery code is left. " : `${left} recovery codes are left. `)}
        Each recovery code signs you in once, without the app.
      </Text>
      <Button variant={left === 0 ? "filled" : "default"} onClick={() => setIsAsking(true)}>
        New recovery codes
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Replace your recovery codes?"
        action="Replace"
        isHarmless
        isBlocked={password === ""}
        isBusy={renewing.isPending}
        failure={renewing.failure}
        onConfirm={() => renewing.mutate({ body: { current_password: password } })}
        onClose={close}
      >
        <Stack gap="sm">
          <Text size="sm">The codes that are left stop working.</Text>
          <PasswordInput
            label="Confirm your password"
            autoComplete="current-password"
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            visibilityToggleButtonProps={{ "aria-label": "Show the password" }}
          />
        </Stack>
      </Confirm>
      <ShownOnce
        title="Your recovery codes"
        text={codes}
        about="They are shown only now. Each works once."
        onKept={() => setCodes(null)}
      />
    </Stack>
  );
}
