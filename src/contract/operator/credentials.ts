import { Type } from "#lib/type.ts";
import { closed, count, missing, ofAccount, orNull, page, paging, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Credentials");

export const listCredentials = defineOperation({
  id: "listCredentials",
  method: "get",
  path: "/credentials",
  summary: "List credentials, newest first",
  description: "Values are never returned.",
  permission: "credential.read",
  query: closed({
    ...paging,
    account: ofAccount,
    strategy: Type.Optional(Type.String({ maxLength: 200, description: "The strategy's id (`strat_...`)." })),
  }),
  answer: page(
    "Credentials",
    closed(
      {
        id: text("The credential's id (`cred_...`)."),
        account: text("The account's name."),
        strategy: text("The strategy's id (`strat_...`)."),
        name: orNull(text("The caller's label.")),
        created_at: time("When it was created."),
        login_rejections: count("Rejected logins in a row."),
        locked_until: orNull(time("When it unlocks; until then no login is attempted.")),
        session_until: orNull(time("When the cached login that runs share expires.")),
        last_run_id: orNull(text("The last run that used it.")),
      },
      { title: "Credential" },
    ),
  ),
});

export const unlockCredential = defineOperation({
  id: "unlockCredential",
  method: "post",
  path: "/credentials/{credentialId}/unlock",
  summary: "Unlock a credential after rejected logins",
  permission: "credential.unlock",
  failures: [missing("credential")],
});

export const testLogin = defineOperation({
  id: "testLogin",
  method: "post",
  path: "/credentials/{credentialId}/test-login",
  summary: "Test the login of a credential",
  description:
    "Starts a run that only logs in with the credential. A rejected login counts towards the lockout. While a test is in progress, it is returned instead of a new one.",
  permission: "run.trigger",
  status: 201,
  answer: closed({ id: text("The run's id."), run_key: text("Its key, a UUID.") }, { title: "TestLogin" }),
  failures: [missing("credential")],
});

export const deleteCredential = defineOperation({
  id: "deleteCredential",
  method: "delete",
  path: "/credentials/{credentialId}",
  summary: "Delete a credential",
  description: "Immediate and permanent; runs that need it fail.",
  permission: "credential.delete",
  failures: [missing("credential")],
});

export const listCredentialSessions = defineOperation({
  id: "listCredentialSessions",
  method: "get",
  path: "/credential-sessions",
  summary: "List credential sessions, newest first",
  permission: "credential.read",
  query: closed({
    ...paging,
    account: ofAccount,
  }),
  answer: page(
    "CredentialSessions",
    closed(
      {
        id: text("The session's id (`sess_...`)."),
        account: text("The account's name."),
        strategy: text("The strategy's id (`strat_...`)."),
        name: orNull(text("The caller's label.")),
        status: text("pending, completed or expired."),
        credential_id: orNull(text("The credential that the session created.")),
        created_at: time("When it was created."),
        expires_at: time("When it expires."),
        completed_at: orNull(time("When it was completed.")),
        sign_in_failure: orNull(text("Why the last sign-in at the target failed; `null`: none failed.")),
        sign_in_failed_at: orNull(time("When that sign-in failed.")),
      },
      { title: "CredentialSession" },
    ),
  ),
});
