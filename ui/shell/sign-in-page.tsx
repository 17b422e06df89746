import { Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { ApiFailure } from "../api/failure.ts";
import { signIn } from "../api/operations.ts";
import { setMe, useDo } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { OuterPage } from "./outer-page.tsx";

export function SignInPage() {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [wantsCode, setWantsCode] = useState(false);
  const signing = useDo(signIn, { changes: [], onDone: setMe });
  const needsCode = (error: Error): boolean =>
    error instanceof ApiFailure && error.has("second_factor_required");

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = { email, password, ...(wantsCode ? { code } : {}) };
    signing.mutate({ body }, { onError: (error) => setWantsCode(wantsCode || needsCode(error)) });
  };
  return (
    <OuterPage title="Sign in">
      <form onSubmit={submit}>
        <Stack gap="md">
          {signing.failure && !(needsCode(signing.failure) && code === "") && (
            <FailureNote error={signing.failure} />
          )}
          {wantsCode ? (
            <>
              <Text size="sm" c="dimmed">
                {email}: give the code that your authenticator app shows now, or one of your recovery codes.
              </Text>
              <TextInput
                label="Code"
                autoComplete="one-time-code"
                inputMode="text"
                required
                autoFocus
                value={code}
                onChange={(event) => setCode(event.currentTarget.value)}
              />
            </>
          ) : (
            <>
              <TextInput
                label="Sign-in name"
                placeholder="you@example.com"
                autoComplete="username"
                required
                autoFocus
                value={email}
                onChange={(event) => setEmail(event.currentTarget.value)}
              />
              <PasswordInput
                label="Password"
                autoComplete="current-password"
                required
                value={password}
                onChange={(event) => setPassword(event.currentTarget.value)}
                visibilityToggleButtonProps={{ "aria-label": "Show the password" }}
              />
            </>
          )}
          <Button type="submit" loading={signing.isPending} fullWidth>
            Sign in
          </Button>
          {wantsCode && (
            <Button variant="subtle" onClick={() => setWantsCode(false)}>
              Use another name
            </Button>
          )}
        </Stack>
      </form>
    </OuterPage>
  );
}
