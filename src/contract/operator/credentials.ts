import Type from "typebox";
import { closed, count, missing, orNull, page, paging, text, time } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Credentials";

export const listCredentials = defineOperation({
  id: "listCredentials",
  method: "get",
  path: "/credentials",
  tag: TAG,
  summary: "List credentials, newest first",
  description: "Never a value of one.",
  permission: "credential.read",
  query: closed({
    ...paging,
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
    strategy: Type.Optional(Type.String({ maxLength: 200, description: "How they log in (`strat_...`)." })),
  }),
  status: 200,
  answer: page(
    "Credentials",
    closed(
      {
        id: text("The credential's id (`cred_...`)."),
        account: text("The account's name."),
        strategy: text("How it logs in (`strat_...`)."),
        name: orNull(text("The caller's label.")),
        created_at: time("When it was vaulted."),
        login_rejections: count("Rejected logins in a row."),
        locked_until: orNull(time("Until when no login is tried.")),
        session_until: orNull(time("Until when a login is kept that runs share.")),
        last_run_id: orNull(text("The run that used it last.")),
      },
      { title: "Credential" },
    ),
  ),
});

export const unlockCredential = defineOperation({
  id: "unlockCredential",
  method: "post",
  path: "/credentials/{credentialId}/unlock",
  tag: TAG,
  summary: "Let runs log in again at once, after rejected logins",
  permission: "credential.unlock",
  status: 204,
  failures: [missing("credential")],
});

export const testLogin = defineOperation({
  id: "testLogin",
  method: "post",
  path: "/credentials/{credentialId}/test-login",
  tag: TAG,
  summary: "Test the login of a credential",
  description:
    "A run that logs in as every run with the credential does, and ends. A login that the target rejects counts as any other. While one is under way, it is that one.",
  permission: "run.trigger",
  status: 201,
  answer: closed({ id: text("The run's id."), run_key: text("Its key, a UUID.") }, { title: "TestLogin" }),
  failures: [missing("credential")],
});

export const deleteCredential = defineOperation({
  id: "deleteCredential",
  method: "delete",
  path: "/credentials/{credentialId}",
  tag: TAG,
  summary: "Delete a credential",
  description: "At once and permanently; runs that need it fail.",
  permission: "credential.delete",
  status: 204,
  failures: [missing("credential")],
});

export const listCredentialSessions = defineOperation({
  id: "listCredentialSessions",
  method: "get",
  path: "/credential-sessions",
  tag: TAG,
  summary: "List the hosted forms that were opened for end users, newest first",
  permission: "credential.read",
  query: closed({
    ...paging,
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
  }),
  status: 200,
  answer: page(
    "CredentialSessions",
    closed(
      {
        id: text("The session's id (`sess_...`)."),
        account: text("The account's name."),
        strategy: text("What it collects for (`strat_...`)."),
        name: orNull(text("The caller's label.")),
        status: text("pending, completed or expired."),
        credential_id: orNull(text("What came of it.")),
        created_at: time("When it was made."),
        expires_at: time("When it ends."),
        completed_at: orNull(time("When it was completed.")),
        sign_in_failure: orNull(
          text("Why the last sign-in at the target came to nothing; `null`: none failed."),
        ),
        sign_in_failed_at: orNull(time("When that was.")),
      },
      { title: "CredentialSession" },
    ),
  ),
});
