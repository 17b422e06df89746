import { Text } from "@mantine/core";
import { useLocation } from "wouter";
import { CREDENTIAL_STATE_NAMES as names, rejectedName } from "#domain/labels/states.ts";
import { deleteCredential, listCredentials, readCredential, unlockCredential } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Mark } from "../parts/run-status.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { Time } from "../parts/time.tsx";

type Credential = AnswerOf<typeof listCredentials>["items"][number];

const CHANGES = [keyOf(listCredentials), keyOf(readCredential)];

/** Whether runs can log in with it. */
export function CredentialState({
  of: { locked_until: until, login_rejections: count, session_until: session },
}: {
  readonly of: Credential;
}) {
  if (until !== null)
    return (
      <>
        <Mark tone="bad">{names.locked}</Mark>
        <Text size="xs" c="dimmed">
          {rejectedName(count)}; unlocks <Time at={until} />
        </Text>
      </>
    );
  if (count > 0) return <Mark tone="waiting">{rejectedName(count)}</Mark>;
  if (session !== null) return <Mark tone="good">{names.loggedIn}</Mark>;
  return <Mark tone="quiet">{names.ready}</Mark>;
}

/** What this operator may do with it. */
export function CredentialActions({
  of: credential,
  size = "xs",
  isPrimary = false,
}: {
  readonly of: Credential;
  readonly size?: "xs" | "sm";
  /** Whether unlocking it is the recommended step. */
  readonly isPrimary?: boolean;
}) {
  const { may } = useSignedIn();
  const [, go] = useLocation();
  const name = credential.name ?? credential.id;
  const input = { params: { credentialId: credential.id } };
  return (
    <>
      {may("credential.unlock") && credential.login_rejections > 0 && (
        <AskButton
          to={unlockCredential}
          input={input}
          changes={CHANGES}
          size={size}
          label="Unlock"
          isPrimary={isPrimary}
          of={name}
          title="Unlock this credential?"
          action="Unlock"
          done="The credential was unlocked."
        >
          Runs can log in with it again. If the login is still wrong, the target may lock its user out.
        </AskButton>
      )}
      {may("run.trigger") && (
        <TestLoginButton
          credential={credential.id}
          name={name}
          size={size}
          label="Test login"
          onStarted={(id) => go(`/runs/${id}`)}
        />
      )}
    </>
  );
}

export function DeleteCredential({
  of: credential,
  onDeleted,
}: {
  readonly of: Credential;
  readonly onDeleted?: () => void;
}) {
  const { may } = useSignedIn();
  const name = credential.name ?? credential.id;
  if (!may("credential.delete")) return null;
  return (
    <AskButton
      to={deleteCredential}
      input={{ params: { credentialId: credential.id } }}
      changes={CHANGES}
      label="Delete"
      isDanger
      {...(onDeleted && { onDone: onDeleted })}
      of={name}
      title="Delete this credential permanently?"
      action="Delete permanently"
      done="The credential was deleted."
    >
      <b>{name}</b> can&apos;t be brought back, also not from a backup. Runs that wait for it fail. The end
      user can fill in a new form.
    </AskButton>
  );
}
