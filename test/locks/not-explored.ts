const OPERATORS_ROW = "it locks the operator's own row alone, first, and what belongs to it after";
const APPLY_LOCK = "it holds the lock of apply, one transaction at a time, as `apply documents` does";
const ENDPOINTS_ROW = "it locks one endpoint's row, and inserts others after it";
const KEYS_LOCK = "it holds the lock of the table of keys, one transaction at a time, and writes a file";

/** What opens a transaction and is in no pair, as `file#function`: why not. */
export const NOT_EXPLORED: Readonly<Record<string, string>> = {
  "src/actions/audit/detach-month.ts#detachMonth":
    "it inserts rows of its own, and deletes entries that have their numbers, which nothing else locks",
  "src/actions/config/end-proposal.ts#discardProposal": "it locks one proposal, and nothing after it",
  "src/actions/credentials/bind-credentials.ts#mark": "it inserts one row, once for an installation",
  "src/actions/credentials/permit-rebinding.ts#permitRebinding": APPLY_LOCK,
  "src/actions/credentials/rebind-credentials.ts#rebindCredential":
    "it has the turn to log in, which `log in` takes, and its rows are those of this one credential",
  "src/actions/credentials/restore-reconcile.ts#eraseCandidates":
    "a command after a restore, before the service is started",
  "src/actions/credentials/restore-reconcile.ts#reconcileRestore":
    "a command after a restore; each transaction deletes one credential, as `delete a credential` does",
  "src/actions/keys/create-api-key.ts#createApiKey": "it inserts rows of its own",
  "src/actions/operators/confirm-proposal.ts#confirmProposal": APPLY_LOCK,
  "src/actions/operators/device-sign-in.ts#approveDeviceSignIn":
    "it locks one row of its own table, first, and inserts rows of its own",
  "src/actions/operators/device-sign-in.ts#denyDeviceSignIn": "it locks and changes one row of its own table",
  "src/actions/operators/create-first-operator.ts#createFirstOperator": "it inserts rows of its own",
  "src/actions/operators/manage-operators.ts#createOperator": "it inserts rows of its own",
  "src/actions/operators/manage-operators.ts#change": OPERATORS_ROW,
  "src/actions/operators/manage-sessions.ts#linkSession": "it inserts one row",
  "src/actions/operators/manage-sessions.ts#requestCredential": "it inserts rows of its own",
  "src/actions/operators/manage-tokens.ts#createOperatorToken": "it inserts rows of its own",
  "src/actions/operators/manage-tokens.ts#revokeTokenById": "it changes one row of its own table",
  "src/actions/operators/oidc-sign-in.ts#finishOidcSignIn": OPERATORS_ROW,
  "src/actions/operators/oidc-step-up.ts#finishOidcStepUp": OPERATORS_ROW,
  "src/actions/operators/own-session.ts#endOwnSession": OPERATORS_ROW,
  "src/actions/operators/own-session.ts#stepUp": OPERATORS_ROW,
  "src/actions/operators/own-sign-in.ts#changePassword": OPERATORS_ROW,
  "src/actions/operators/own-sign-in.ts#beginSecondFactor": OPERATORS_ROW,
  "src/actions/operators/own-sign-in.ts#confirmSecondFactor": OPERATORS_ROW,
  "src/actions/operators/own-sign-in.ts#renewRecoveryCodes": OPERATORS_ROW,
  "src/actions/operators/sign-in.ts#admit": OPERATORS_ROW,
  "src/actions/test-mode/open-test-account.ts#openTestAccount": APPLY_LOCK,
  "src/actions/test-mode/test-clock.ts#putTestClock":
    "it locks the account's row first, as an admission does, and its runs' rows in the order of their ids",
  "src/actions/sessions/embedded-flow.ts#chooseInFlow":
    "it locks the row of the embedded session first, as a submit of one of its slots does",
  "src/actions/schedules/put-schedule.ts#putSchedule":
    "it locks its schedule's row first, and inserts others after it",
  "src/actions/schedules/operate-schedules.ts#pauseScheduleById": "it locks one schedule's row",
  "src/actions/schedules/operate-schedules.ts#resumeScheduleById": "it locks one schedule's row",
  "src/actions/schedules/operate-schedules.ts#runScheduleNow":
    "it locks its schedule's row first, and inserts others after it, as `fire a schedule` does",
  "src/actions/schedules/put-schedule.ts#deleteSchedule":
    "it locks one schedule's row, and deletes what belongs to it",
  "src/actions/vault/master-keys.ts#addKey": KEYS_LOCK,
  "src/actions/vault/master-keys.ts#registerKey": KEYS_LOCK,
  "src/actions/vault/master-keys.ts#promoteKey": KEYS_LOCK,
  "src/actions/vault/master-keys.ts#retireKey": KEYS_LOCK,
  "src/actions/webhooks/deliver-webhooks.ts#disable": ENDPOINTS_ROW,
  "src/actions/webhooks/manage-endpoints.ts#createWebhookEndpoint": "it inserts rows of its own",
  "src/actions/webhooks/manage-endpoints.ts#rotateWebhookSecret":
    "it locks one endpoint's secrets, in one statement",
  "src/actions/webhooks/manage-endpoints.ts#updateWebhook": ENDPOINTS_ROW,
  "src/actions/webhooks/manage-endpoints.ts#disableWebhook": ENDPOINTS_ROW,
  "src/actions/webhooks/manage-endpoints.ts#enableWebhook": ENDPOINTS_ROW,
  "src/actions/webhooks/manage-endpoints.ts#deleteWebhook":
    "its deliveries may be in a batch that is being recorded; it is repeated when the server aborts it",
  "src/actions/webhooks/resend.ts#resendWebhooks":
    "it locks deliveries in one statement, and inserts an entry",
  "src/actions/webhooks/resend.ts#pingWebhook": "it inserts rows of its own",
  "src/actions/webhooks/trigger-event.ts#triggerEvent": "it inserts rows of its own",
  "src/db/webhooks/webhook-deliveries.ts#deleteOldEvents":
    "its deliveries are 30 days old; it is repeated when the server aborts it",
  "src/actions/upkeep/read-metrics.ts#databaseGauges": "it only reads",
  "src/db/audit-entries.ts#inSnapshot": "it only reads",
  "src/db/backups/snapshot.ts#withoutPurges":
    "it waits for an advisory lock first and locks nothing after it; purges only try that lock",
  "src/db/connection/migrate.ts#withMigrationLock":
    "it holds the lock of migrations; what it may wait for is tested by test/db/migrate.pg.test.ts",
  "src/db/invariants/invariants.ts#inLongSnapshot": "it only reads",
  "src/db/operators/operators.ts#renewPasswordHash": OPERATORS_ROW,
  "src/db/runs/run-steps.ts#saveStepObject": "the first half of saveStepSource, which is explored",
  "src/db/signing/check-signed-rows.ts#acceptRow": "it changes one row, and inserts others",
  "src/db/signing/first-signing.ts#signFirstRows": "at a start, under a lock of its own, once for each kind",
  "src/db/signing/row-alarms.ts#record": "it inserts rows of its own",
};
