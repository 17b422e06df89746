import { Button, Code, Group, List, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useState, type FormEvent } from "react";
import { beginSecondFactor, confirmSecondFactor } from "../api/operations.ts";
import { endSession, setMe, useOperation, useSignedIn, type Me } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { QrCode } from "../parts/qr-code.tsx";

interface SetUp {
  readonly secret: string;
  readonly uri: string;
}

interface Confirmed {
  readonly recovery_codes: readonly string[];
  readonly me: Me;
}

/** Three steps: confirm the password, scan the QR code and enter the first code, save the recovery codes. */
export function NewSecondFactor() {
  const [setUp, setSetUp] = useState<SetUp | null>(null);
  const [confirmed, setConfirmed] = useState<Confirmed | null>(null);
  if (confirmed) return <RecoveryCodes codes={confirmed.recovery_codes} onRead={() => setMe(confirmed.me)} />;
  return setUp ? <ConfirmStep setUp={setUp} onDone={setConfirmed} /> : <PasswordStep onDone={setSetUp} />;
}

function PasswordStep({ onDone }: { readonly onDone: (setUp: SetUp) => void }) {
  const [password, setPassword] = useState("");
  // Operators who only sign in at the provider may have no password.
  const isOfProvider = useSignedIn().signed_in_by === "oidc";
  const beginning = useOperation(beginSecondFactor, { changes: [], onDone });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    beginning.mutate({ body: isOfProvider && password === "" ? {} : { current_password: password } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">
          An authenticator app on your phone generates a code for each sign-in. An admin must have one before
          anything else.
        </Text>
        {beginning.failure && <FailureNote error={beginning.failure} />}
        <PasswordInput
          label="Confirm your password"
          description={
            isOfProvider ? "Not needed within five minutes of signing in at your provider" : undefined
          }
          autoComplete="current-password"
          required={!isOfProvider}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show the password" }}
        />
        <Group justify="space-between">
          <Button variant="subtle" onClick={() => void endSession()}>
            Sign out
          </Button>
          <Button type="submit" loading={beginning.isPending}>
            Continue
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function ConfirmStep({
  setUp,
  onDone,
}: {
  readonly setUp: SetUp;
  readonly onDone: (answer: Confirmed) => void;
}) {
  const [code, setCode] = useState("");
  const confirming = useOperation(confirmSecondFactor, { changes: [], onDone });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    confirming.mutate({ body: { code } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">
          Scan this with your authenticator app, or type in the key. Then enter the code that the app shows.
        </Text>
        <QrCode text={setUp.uri} label="QR code for your authenticator app" />
        <Text size="sm">
          Key: <Code>{setUp.secret}</Code>
        </Text>
        {confirming.failure && <FailureNote error={confirming.failure} />}
        <TextInput
          label="Code"
          autoComplete="one-time-code"
          inputMode="numeric"
          required
          autoFocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Button type="submit" loading={confirming.isPending}>
          Confirm
        </Button>
      </Stack>
    </form>
  );
}

function RecoveryCodes({
  codes,
  onRead,
}: {
  readonly codes: readonly string[];
  readonly onRead: () => void;
}) {
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <Stack gap="md">
      <Text size="sm">
        If you lose your phone, each of these codes lets you sign in once. They won't be shown again: keep
        them where you keep passwords.
      </Text>
      <List listStyleType="none" aria-label="Recovery codes">
        {codes.map((each) => (
          <List.Item key={each}>
            <Code>{each}</Code>
          </List.Item>
        ))}
      </List>
      <Button variant="default" onClick={() => clipboard.copy(codes.join("\n"))}>
        {clipboard.copied ? "Copied" : "Copy all"}
      </Button>
      <Button onClick={onRead}>I've saved these codes</Button>
    </Stack>
  );
}
