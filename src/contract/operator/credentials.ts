import { Type } from "#lib/type.ts";
import { SESSION_STATUSES } from "#domain/credential-session.ts";
import { CREDENTIAL_STATES } from "#domain/credential-state.ts";
import {
  closed,
  conflict,
  count,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Credentials");

const credential = {
  id: text("The credential's id (`cred_...`)."),
  account: text("The account's name."),
  strategy: text("The strategy's id (`strat_...`)."),
  name: orNull(text("The caller's label.")),
  created_at: time("When it was created."),
  login_rejections: count("Rejected logins in a row."),
  locked_until: orNull(time("When it unlocks; until then no login is attempted.")),
  session_until: orNull(time("When the cached login that runs share expires.")),
  last_run_id: orNull(text("The last run that used it.")),
  last_run_at: orNull(time("When that run was triggered.")),
  customer: orNull(text("Whose it is, by the metadata of its session or of the last run with it.")),
};

export const listCredentials = defineOperation({
  id: "listCredentials",
  method: "get",
  path: "/credentials",
  summary: "List credentials, newest first",
  description: "Values are never returned.",
  permission: "credential.read",
  accounts: "own",
  query: closed({
    ...paging,
    account: ofAccount,
    strategy: Type.Optional(Type.String({ maxLength: 200, description: "The strategy's id (`strat_...`)." })),
    q: Type.Optional(Type.String({ maxLength: 200, description: "Part of the label or of the id." })),
    state: Type.Optional(
      oneOf(
        CREDENTIAL_STATES,
        "`locked`: no login is attempted; `rejected`: the last login was rejected, whether or not it is locked.",
      ),
    ),
  }),
  answer: page("Credentials", closed(credential, { title: "Credential" })),
});

export const readCredential = defineOperation({
  id: "readCredential",
  method: "get",
  path: "/credentials/{credentialId}",
  summary: "Read a credential",
  description: "What uses it, and how its logins went. Its values are never returned.",
  permission: "credential.read",
  answer: closed(
    {
      ...credential,
      session_id: text("The session that created it."),
      origins: Type.Array(text("An origin to which it may be sent.")),
      uses: Type.Array(
        closed({
          blueprint: orNull(text("The Blueprint's key; `null`: test logins.")),
          runs: count("Its runs with this credential, among the newest 200."),
          completed: count("Those that completed."),
          failed: count("Those that failed."),
          login_failed: count("Those whose login failed."),
          last_run_id: text("The last one."),
          last_run_at: time("When the last one was triggered."),
        }),
      ),
    },
    { title: "CredentialDetail" },
  ),
  failures: [missing("credential")],
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

export const requestCredential = defineOperation({
  id: "requestCredential",
  method: "post",
  path: "/credentials/{credentialId}/request",
  summary: "Create a session for a credential's user to type the login again",
  description:
    "A session with the strategy, label, references and `return_url` of the one that collected the credential. What its user types becomes a new credential, and the account's backend is told of it as of any other. This one stays as it is.",
  permission: "session.manage",
  status: 201,
  answer: closed(
    { session_id: text("The new session's id (`sess_...`); its link is given out by itself.") },
    { title: "RequestedCredential" },
  ),
  failures: [
    missing("credential"),
    conflict("An embedded session collected the credential: the customer's page asks for the next one."),
  ],
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

const session = {
  id: text("The session's id (`sess_...`)."),
  account: text("The account's name."),
  strategy: text("The strategy's id (`strat_...`)."),
  name: orNull(text("The caller's label.")),
  metadata: orNull(
    Type.Record(Type.String(), Type.String(), { description: "The caller's own references." }),
  ),
  status: text("pending, completed or expired."),
  credential_id: orNull(text("The credential that the session created.")),
  created_at: time("When it was created."),
  expires_at: time("When it expires."),
  opened_at: orNull(time("When its link was first opened.")),
  completed_at: orNull(time("When it was completed.")),
  sign_in_failure: orNull(text("Why the last sign-in at the target failed; `null`: none failed.")),
  sign_in_failed_at: orNull(time("When that sign-in failed.")),
  customer: orNull(
    text("Whose login it asks for, by its metadata or that of the last run with its credential."),
  ),
  created_by: orNull(
    text(
      "Who created it: an operator's email, a key or token by its label, or `the command line`; `null`: not in the audit log any more.",
    ),
  ),
};

export const listCredentialSessions = defineOperation({
  id: "listCredentialSessions",
  method: "get",
  path: "/credential-sessions",
  summary: "List credential sessions, newest first",
  permission: "credential.read",
  accounts: "own",
  query: closed({
    ...paging,
    account: ofAccount,
    state: Type.Optional(oneOf(SESSION_STATUSES, "Only those with this status.")),
  }),
  answer: page("CredentialSessions", closed(session, { title: "CredentialSession" })),
});

export const readCredentialSession = defineOperation({
  id: "readCredentialSession",
  method: "get",
  path: "/credential-sessions/{sessionId}",
  summary: "Read a credential session",
  permission: "credential.read",
  answer: closed(
    {
      ...session,
      strategy_version: count("The strategy's version that its form shows."),
      return_url: orNull(text("Where the end user is sent afterwards.")),
      embedded_session_id: orNull(
        text("The embedded session that it is part of (`ecs_...`); it then has no link of its own."),
      ),
      blueprint: orNull(text("For an embedded session: the Blueprint.")),
      slot: orNull(text("For an embedded session: the slot of the Blueprint.")),
    },
    { title: "CredentialSessionDetail" },
  ),
  failures: [missing("credential session")],
});

const notPending = conflict("The session is completed, has expired, or is part of an embedded session.");

export const linkCredentialSession = defineOperation({
  id: "linkCredentialSession",
  method: "post",
  path: "/credential-sessions/{sessionId}/link",
  summary: "Get the link of a pending session again",
  description:
    "The link that the customer's backend got when it created the session. Anyone who has it can fill in the form, so this is recorded in the audit log.",
  permission: "session.manage",
  answer: closed({ hosted_url: text("The link to the hosted form.") }, { title: "SessionLink" }),
  failures: [missing("credential session"), notPending],
});

export const revokeCredentialSession = defineOperation({
  id: "revokeCredentialSession",
  method: "post",
  path: "/credential-sessions/{sessionId}/revoke",
  summary: "Revoke a pending session",
  description: "It expires now: its link no longer accepts anything.",
  permission: "session.manage",
  failures: [missing("credential session"), notPending],
});
