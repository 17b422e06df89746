import { Button, Divider, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useLocation } from "wouter";
import { ApiFailure } from "../api/failure.ts";
import { beginOidcSignIn, readSignInMethods, signIn } from "../api/operations.ts";
import { setMe, useOperation, useRead } from "../api/queries.ts";
import { leaveFor } from "../api/use-draft.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Loading } from "../parts/loading.tsx";
import { OuterPage } from "./outer-page.tsx";

export function SignInPage() {
  const methods = useRead(readSignInMethods, {});
  // If the methods can't be read, asks for a password, as without a provider.
  const { password: byPassword, oidc } = methods.data ?? { password: true, oidc: null };
  if (methods.isPending)
    return (
      <OuterPage title="Sign in">
        <Loading what="Loading" />
      </OuterPage>
    );
  return (
    <OuterPage title="Sign in" about={`To ${location.host}`}>
      <Stack gap="md">
        {oidc && <ProviderButton label={oidc.label} />}
        {oidc && byPassword && <Divider label="or" />}
        {byPassword && <PasswordForm />}
      </Stack>
    </OuterPage>
  );
}

/** Redirects to the provider, and returns to the requested page. */
function ProviderButton({ label }: { readonly label: string }) {
  const [path] = useLocation();
  const leaving = useOperation(beginOidcSignIn, { changes: [], onDone: ({ url }) => leaveFor(url) });
  const leave = (): void => leaving.mutate({ body: { return_to: `${path}${location.search}` } });
  return (
    <>
      {leaving.failure && <FailureNote error={leaving.failure} />}
      <Button variant="default" fullWidth loading={leaving.isPending} onClick={leave}>
        Sign in with {label}
      </Button>
    </>
  );
}

const LOST = (
  <Text size="sm" c="dimmed">
    Lost your password or your phone? An admin can set new ones for you.
  </Text>
);

function PasswordForm() {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [wantsCode, setWantsCode] = useState(false);
  const signing = useOperation(signIn, { changes: [], onDone: setMe });
  const needsCode = (error: Error): boolean =>
    error instanceof ApiFailure && error.has("second_factor_required");
  // The field itself shows that a code is required; too many attempts need a message.
  const isJustAsked = (error: Error): boolean =>
    needsCode(error) && code === "" && error instanceof ApiFailure && error.status === 401;

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = { email, password, ...(wantsCode ? { code } : {}) };
    signing.mutate({ body }, { onError: (error) => setWantsCode(wantsCode || needsCode(error)) });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {signing.failure && !isJustAsked(signing.failure) && <FailureNote error={signing.failure} />}
        {wantsCode ? (
          <>
            <Text size="sm" c="dimmed">
              {email}: enter the current code of your authenticator app, or one of your recovery codes.
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
              label="Email"
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
        {!wantsCode && LOST}
        {wantsCode && (
          <Button variant="subtle" onClick={() => setWantsCode(false)}>
            Use another email
          </Button>
        )}
      </Stack>
    </form>
  );
}
