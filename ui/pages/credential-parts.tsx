import { Group, SimpleGrid, Text } from "@mantine/core";
import { useLocation } from "wouter";
import { CREDENTIAL_STATE_NAMES as names, rejectedName } from "#domain/labels/states.ts";
import {
  deleteCredential,
  listCredentials,
  listCredentialSessions,
  readCredential,
  readRun,
  requestCredential,
  unlockCredential,
} from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Mark } from "../parts/run-status.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { Time } from "../parts/time.tsx";

type Credential = AnswerOf<typeof listCredentials>["items"][number];
/** What is known of it where it is used. */
type Rejected = Pick<Credential, "id" | "name" | "login_rejections" | "locked_until">;

const CHANGES = [keyOf(listCredentials), keyOf(readCredential), keyOf(readRun)];

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
export function CredentialActions({ of: credential }: { readonly of: Rejected }) {
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
          label="Unlock"
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
          label="Test login"
          onStarted={(id) => go(`/runs/${id}`)}
        />
      )}
    </>
  );
}

/** A link for the user to type the login again, if this operator may give one out. */
export function NewLinkButton({
  of: { id, name },
  isPrimary = false,
}: {
  readonly of: { readonly id: string; readonly name: string | null };
  readonly isPrimary?: boolean;
}) {
  const { may } = useSignedIn();
  const [, go] = useLocation();
  if (!may("session.manage")) return null;
  return (
    <AskButton
      to={requestCredential}
      input={{ params: { credentialId: id } }}
      changes={[keyOf(listCredentialSessions)]}
      label="New link"
      isPrimary={isPrimary}
      of={`of ${name ?? id}`}
      title="Ask the user for the login again?"
      action="Create a link"
      isHarmless
      done="The session was created. Show its link, and give it to the user."
      onDone={({ session_id: session }) => go(`/sessions/${session}`)}
    >
      This creates a session like the one that collected <b>{name ?? id}</b>. What its user types becomes a
      new credential, and the account&apos;s backend learns of it as of any other. The old one stays until it
      is deleted.
    </AskButton>
  );
}

/** What to do about a login that the target rejects: it depends on whether the password is right, which only its user knows. */
export function WaysOut({
  of: credential,
  isTest = false,
}: {
  readonly of: Rejected;
  /** Whether only the login is tried, so that there is no run to repeat. */
  readonly isTest?: boolean;
}) {
  const mayAsk = useSignedIn().may("session.manage");
  const isLocked = credential.locked_until !== null;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} mt="sm" spacing="lg">
      <div>
        <Text size="sm" fw={600}>
          The password is wrong, or has changed
        </Text>
        <Text size="sm" mb="xs">
          {mayAsk
            ? "Send its user a new link: they type the right one."
            : "An admin or an operator, or the account's backend, creates a new link for its user."}
        </Text>
        <NewLinkButton of={credential} isPrimary />
      </div>
      <div>
        <Text size="sm" fw={600}>
          The password is right
        </Text>
        <Text size="sm" mb="xs">
          {describeTest(isLocked, isTest)}
        </Text>
        <Group gap="xs">
          <CredentialActions of={credential} />
        </Group>
      </div>
    </SimpleGrid>
  );
}

function describeTest(isLocked: boolean, isTest: boolean): string {
  const steps = [
    ...(isLocked ? ["unlock the credential"] : []),
    isTest ? "test the login again" : "test the login",
    ...(isTest ? [] : ["run again"]),
  ];
  const [last, ...before] = steps.toReversed();
  const text = before.length === 0 ? (last ?? "") : `${before.toReversed().join(", ")}, then ${last}`;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
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
