import { listCredentials, listRuns, testLogin } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { AskButton } from "./ask-button.tsx";

/** Starts a run that logs in with the credential and does nothing else. */
export function TestLoginButton(props: {
  readonly credential: string;
  readonly name: string;
  readonly label: string;
  readonly size?: "xs" | "sm";
  readonly isPrimary?: boolean;
  readonly onStarted: (runId: string) => void;
}) {
  return (
    <AskButton
      to={testLogin}
      input={{ params: { credentialId: props.credential } }}
      changes={[keyOf(listRuns), keyOf(listCredentials)]}
      size={props.size ?? "xs"}
      label={props.label}
      isPrimary={props.isPrimary === true}
      of={props.name}
      title="Test this login now?"
      action="Test login"
      isHarmless
      done="The login is being tested."
      onDone={({ id }) => props.onStarted(id)}
    >
      A worker logs in as at the start of a run and reports each step, never a value. If the target rejects
      it, that counts like any other rejected login.
    </AskButton>
  );
}
