// Written by `npm run generate` from openapi/openapi.json.

/** Events as webhooks have them: the type of each is its `type`, its `id` is the `webhook-id`, and its `data` is one line with the JSON of the webhook's body. Lines that begin with `:` are comments and must be ignored. */
export type AccountEventStream = string;

/** The new session, with the token that opens it. */
export interface CreatedEmbeddedCredentialSession {
  /** The session's id. */
  readonly id: string;
  /** The session's status. `completed` means that the session has ended and all credentials can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress. */
  readonly status: "pending" | "completed" | "expired" | (string & {});
  /** The URL that the widget embeds, which contains no secret. `null` once the session is no longer `pending`. */
  readonly embed_url: string | null;
  /** The origin of the only page that may embed the frame. */
  readonly origin: string;
  /** The Blueprints to choose from. */
  readonly blueprint_keys: readonly string[];
  /** The chosen Blueprint; `null` until one is chosen. */
  readonly selected_blueprint_key: string | null;
  /** The credential for the Blueprint's first or only slot; `null` until `status` is `completed`, then stable. */
  readonly credential_id: string | null;
  /** The vaulted credentials, by slot. Complete once `status` is `completed`; those of an `expired` session can be deleted. */
  readonly credential_ids: Readonly<Record<string, string>>;
  /** When the session expires: half an hour after it was created, unless another lifetime was requested. */
  readonly expires_at: string;
  /** When the last credential was vaulted; `null` before that. */
  readonly completed_at: string | null;
  /** When the session was created. */
  readonly created_at: string;
  /** The token that your page passes to the widget and must not disclose to anyone else. Only returned here, and in replays of this answer. */
  readonly client_token: string;
}

/** What happened to a credential. */
export interface CredentialEvent {
  /** The type of the event. */
  readonly type: "credential.deleted" | "credential.needs_attention" | "credential.locked";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: {
    /** The credential's id. */
    readonly id: string;
    /** The authentication strategy (`strat_...`) whose fields the hosted form shows. */
    readonly strategy_id: string;
  };
}

/** A short-lived hosted form that collects an end user's credentials. */
export interface CredentialSession {
  /** The session's id. */
  readonly id: string;
  /** The session's status. `completed` means that the session has ended and the credential can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress. */
  readonly status: "pending" | "completed" | "expired" | (string & {});
  /** The URL of the form for the end user; `null` once the session is no longer `pending`. */
  readonly hosted_url: string | null;
  /** As given when the session was created; `null` if none was given. */
  readonly return_url: string | null;
  /** The authentication strategy (`strat_...`) whose fields the hosted form shows. */
  readonly strategy_id: string;
  /** The vaulted credential; `null` until `status` is `completed`, then stable. Store it only then. */
  readonly credential_id: string | null;
  /** When the session expires: 7 days after it was created, unless the account defines another lifetime. */
  readonly expires_at: string;
  /** When the end user submitted the form; `null` before that. */
  readonly completed_at: string | null;
  /** When the session was created. */
  readonly created_at: string;
  /** Extension: as given when the session was created. Only present if it was. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Extension: as given when the session was created. Only present if it was. */
  readonly cancel_url?: string | undefined;
}

/** What became of a credential session. */
export interface CredentialSessionEvent {
  /** The type of the event. */
  readonly type: "credential_session.completed" | "credential_session.expired";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: CredentialSession;
}

/** The parameters of a new session. Other keys are ignored. */
export interface CredentialSessionRequest {
  /** The authentication strategy (`strat_...`) whose fields the hosted form shows. */
  readonly strategy_id: string;
  /** Label of the vaulted credential in the operator dashboard. Never returned. At most 255 characters, without U+0000. */
  readonly name?: string | null | undefined;
  /** The URL to which the end user is redirected after submitting the form, with `session_id` appended. Its exact origin (scheme, host, port) must be on the account's allowlist; path and query are arbitrary. */
  readonly return_url?: string | null | undefined;
  /** Extension: the URL to which the form's link “Cancel” leads, with `session_id` appended. The rules of `return_url` apply. The session stays `pending`. */
  readonly cancel_url?: string | null | undefined;
  /** Extension: your own references, returned with the session. At most 20 items; names have at most 40 of the characters A-Z, a-z, 0-9, `_`, `.` and `-`, values at most 500 characters. Nothing secret belongs here. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined;
  /** Extension: how long the session lasts, at most as long as the account's sessions do. */
  readonly expires_in_seconds?: number | null | undefined;
}

/** Inline results. */
export interface DirectRunResults {
  /** The method that was used. */
  readonly dataDeliveryMethod: "direct";
  /** The records, by the output node's reference key, or `<node_ref>.<handle_key>` when the node has several output handles. */
  readonly results: Readonly<Record<string, ResultSet>>;
  readonly executionMetadata: ExecutionMetadata;
}

/** A short-lived flow in an embedded frame that collects the credentials for one Blueprint. */
export interface EmbeddedCredentialSession {
  /** The session's id. */
  readonly id: string;
  /** The session's status. `completed` means that the session has ended and all credentials can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress. */
  readonly status: "pending" | "completed" | "expired" | (string & {});
  /** The URL that the widget embeds, which contains no secret. `null` once the session is no longer `pending`. */
  readonly embed_url: string | null;
  /** The origin of the only page that may embed the frame. */
  readonly origin: string;
  /** The Blueprints to choose from. */
  readonly blueprint_keys: readonly string[];
  /** The chosen Blueprint; `null` until one is chosen. */
  readonly selected_blueprint_key: string | null;
  /** The credential for the Blueprint's first or only slot; `null` until `status` is `completed`, then stable. */
  readonly credential_id: string | null;
  /** The vaulted credentials, by slot. Complete once `status` is `completed`; those of an `expired` session can be deleted. */
  readonly credential_ids: Readonly<Record<string, string>>;
  /** When the session expires: half an hour after it was created, unless another lifetime was requested. */
  readonly expires_at: string;
  /** When the last credential was vaulted; `null` before that. */
  readonly completed_at: string | null;
  /** When the session was created. */
  readonly created_at: string;
}

/** What became of an embedded credential session. */
export interface EmbeddedCredentialSessionEvent {
  /** The type of the event. */
  readonly type: "embedded_credential_session.completed" | "embedded_credential_session.expired";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: EmbeddedCredentialSession;
}

/** The parameters of a new embedded session. Other keys are ignored. */
export interface EmbeddedCredentialSessionRequest {
  /** Scheme, host and port of the page that embeds the frame, which must be one of the account's origins for embedding. No other page can embed it. */
  readonly origin: string;
  /** The Blueprints that the end user can choose from, in this order. With a single one, the frame starts with its form. Default: all Blueprints of the account that need a credential. */
  readonly blueprint_keys?: readonly string[] | null | undefined;
  /** Label of the vaulted credentials in the operator dashboard. Never returned. At most 255 characters, without U+0000. */
  readonly name?: string | null | undefined;
  /** The language of the frame, as a BCP 47 tag; an unsupported one is ignored. Default: the browser's language. */
  readonly locale?: string | null | undefined;
  /** How long the frame can be used. Default: half an hour. */
  readonly expires_in_seconds?: number | null | undefined;
}

/** What happened to another endpoint of the account. */
export interface EndpointEvent {
  /** The type of the event. */
  readonly type: "webhook.disabled";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: {
    /** The endpoint's id. */
    readonly id: string;
    /** `operator`, `gone` (it answered 410) or `failing` (for five days). */
    readonly reason: string;
  };
}

/** The envelope of every failure: the single top-level key `error`. */
export interface ErrorEnvelope {
  readonly error: ErrorObject;
}

/** One problem with the request. */
export interface ErrorDetail {
  /** An explanation for people. */
  readonly message: string;
  /** Machine-readable code: `invalid_input_data` (a field is malformed, names an unknown resource or doesn't match its format), `idempotency_key_reuse` (the `Idempotency-Key` was used earlier with a different request), `idempotency_key_in_use` (a request with this `Idempotency-Key` is still being processed), `run_data_purged` (the data of the run has been purged), `queued_runs_quota` (the account has reached its limit of waiting runs), `stored_bytes_quota` (the account has reached its limit of stored bytes). */
  readonly code?: string | null | undefined;
  /** The offending field in dot notation, as the caller wrote it; the name of a header or query parameter. */
  readonly field?: string | null | undefined;
}

/** The error. */
export interface ErrorObject {
  /** The kind of failure. */
  readonly type: "authentication_error" | "authorization_error" | "not_found" | "conflict" | "validation_error" | "rate_limit_exceeded" | "internal_error";
  /** An explanation for people. Code must not depend on it. */
  readonly message: string;
  /** The problems, one by one; omitted if there is nothing to name. */
  readonly details?: readonly ErrorDetail[] | undefined;
}

/** Information about the run itself. */
export interface ExecutionMetadata {
  /** The run's key, a UUID. It can be used instead of the run's id in any path. */
  readonly runKey: string;
  /** The run's stored metadata: text by name. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly timings: ExecutionTimings;
}

/** When the run was executed. */
export interface ExecutionTimings {
  /** The run's `started_at`. */
  readonly executionBeganAt: string;
  /** The run's `ended_at`. */
  readonly executionCompletedAt: string;
}

/** The state of the process. */
export interface Health {
  /** The state of the process, in a word or two. */
  readonly status: string;
}

/** A test, sent by an operator. */
export interface PingEvent {
  /** The type of the event. */
  readonly type: "ping";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: {
    /** The endpoint's id. */
    readonly id: string;
  };
}

/** Where the results can be downloaded. */
export interface PresignedRunResults {
  /** The method that was used. */
  readonly dataDeliveryMethod: "presigned_url";
  /** Download URLs, by the output node's reference key, or `<node_ref>.<handle_key>` when the node has several output handles. */
  readonly results: Readonly<Record<string, string>>;
  readonly executionMetadata: ExecutionMetadata;
}

/** Whether the process can work, and what is in its way. */
export interface Readiness {
  /** The state of the process, in a word or two. */
  readonly status: string;
  /** The disks that had no room for a write in the last half minute. Missing: none. */
  readonly disk_full?: readonly string[] | undefined;
}

/** A rule that a record violates. */
export interface RecordError {
  /** The field of `data` in dot notation; `null` for the record as a whole. */
  readonly field: string | null;
  /** Machine-readable code of the rule. */
  readonly code: string;
  /** What is wrong, for people. */
  readonly message: string;
}

/** One record of an output. */
export interface ResultRecord {
  /** The output fields of the Blueprint. */
  readonly data: Readonly<Record<string, unknown>>;
  /** Empty when the record is valid. */
  readonly errors: readonly RecordError[];
  /** Whether the record has no errors. */
  readonly isValid: boolean;
}

/** The records of one result key; also the content of a presigned download. */
export interface ResultSet {
  /** The number of records. */
  readonly totalRecords: number;
  /** All records. */
  readonly records: readonly ResultRecord[];
}

/** A run that is queued. */
export interface RunAccepted {
  /** The run's id. */
  readonly id: string;
  /** The run's key, a UUID. It can be used instead of the run's id in any path. */
  readonly run_key: string;
  /** Always `queued`: the run has not started. */
  readonly status: string;
}

/** Why the run failed. */
export interface RunError {
  /** Currently `execution_failed` for every failed run. An open set: treat an unknown code as a failure that may be retried. */
  readonly code: "execution_failed" | (string & {});
  /** One of a few fixed sentences; never contains data of the run. */
  readonly message: string;
}

/** What happened to a run. Its results are fetched with an API key. */
export interface RunEvent {
  /** The type of the event. */
  readonly type: "run.started" | "run.awaiting_review" | "run.completed" | "run.failed" | "run.cancelled" | "run.purged";
  /** When it happened. Events may arrive in any order. */
  readonly timestamp: string;
  readonly data: RunStatus;
}

/** Events of the type `status`. The `data` of each is one line with the JSON of the schema `RunStatus`; its `id` increases with every change of `status` or `progress_step`. Lines that begin with `:` are comments and must be ignored. */
export type RunEventStream = string;

/** The outputs of a completed run, in one of two forms: `dataDeliveryMethod` says which. */
export type RunResults = DirectRunResults | PresignedRunResults;

/** The status of a run, without inputs, outputs, file URLs or raw errors. */
export interface RunStatus {
  /** The run's id. */
  readonly id: string;
  /** The run's key, a UUID. It can be used instead of the run's id in any path. */
  readonly run_key: string;
  /** The run's status. `completed`, `failed` and `cancelled` are terminal. Known values: `queued`, `running`, `completed`, `failed`, `cancelled`. An open set: treat an unknown value like a state in progress. */
  readonly status: "queued" | "running" | "completed" | "failed" | "cancelled" | (string & {});
  /** The step within the status; a Blueprint may define additional milestones. Known values: `queued`, `authenticating`, `running`, `awaiting_review`, `completed`, `failed`, `cancelled`, `unknown`. An open set: treat an unknown value like a state in progress. */
  readonly progress_step: "queued" | "authenticating" | "running" | "awaiting_review" | "completed" | "failed" | "cancelled" | "unknown" | (string & {});
  /** When the run was triggered. */
  readonly created_at: string;
  /** When `status` became `running`; `null` before that, and if the login failed. */
  readonly started_at: string | null;
  /** When the run ended; `null` before that. */
  readonly ended_at: string | null;
  /** Present only if `status` is `failed`. */
  readonly error: RunError | null;
  /** The Blueprint that the run executes. */
  readonly blueprint_id: string;
}

/** A schedule. Like a run's status it has nothing of the trigger's body. */
export interface Schedule {
  /** Your key. */
  readonly key: string;
  /** The Blueprint's trigger key. */
  readonly blueprint_key: string;
  /** Minute, hour, day of the month, month, day of the week. */
  readonly cron: string;
  /** An IANA time zone. */
  readonly time_zone: string;
  /** Times that passed while no worker was there. `skip`: none; `once`: one run for all of them; `all`: one run each, at most the latest 100. Known values: `skip`, `once`, `all`. An open set: treat an unknown value like a state in progress. */
  readonly missed: "skip" | "once" | "all" | (string & {});
  /** A time at which an earlier run has not ended. `skip`: no run; `queue`: the run waits for the earlier one's end; `cancel`: the earlier one is cancelled. Known values: `skip`, `queue`, `cancel`. An open set: treat an unknown value like a state in progress. */
  readonly overlap: "skip" | "queue" | "cancel" | (string & {});
  /** How long after its time a run may begin, such as `90s` or `10m`, at most `1d`: how long follows from the schedule and the time, and it is before the next time. It spreads many schedules of the same time. */
  readonly jitter: string;
  /** Whether it begins runs. Known values: `active`, `paused`. An open set: treat an unknown value like a state in progress. */
  readonly status: "active" | "paused" | (string & {});
  /** Why it is paused; `null`: it is active. `credential_locked` ends by itself, and `operator` when an operator resumes it; after any other reason, put it again. */
  readonly paused_reason: string | null;
  /** When the locked credential is used again; `null` for other reasons. */
  readonly paused_until: string | null;
  /** Why its trigger was refused. */
  readonly paused_detail: string | null;
  /** Its next time; `null` while it is paused. */
  readonly next_at: string | null;
  readonly last: ScheduleFire | null;
  /** When it was created. */
  readonly created_at: string;
  /** When it last changed. */
  readonly updated_at: string;
}

/** The last time about which something was decided. */
export interface ScheduleFire {
  /** The time. */
  readonly due_at: string;
  /** What became of it. Known values: `run`, `manual`, `missed`, `overlap`, `credential_locked`, `refused`. An open set: treat an unknown value like a state in progress. */
  readonly outcome: "run" | "manual" | "missed" | "overlap" | "credential_locked" | "refused" | (string & {});
  /** The run, if there is one. */
  readonly run_id: string | null;
}

/** When a Blueprint runs, and with what. */
export interface ScheduleRequest {
  /** The Blueprint's trigger key. */
  readonly blueprint_key: string;
  /** Minute, hour, day of the month, month, day of the week. */
  readonly cron: string;
  /** An IANA time zone. */
  readonly time_zone: string;
  /** Times that passed while no worker was there. `skip`: none; `once`: one run for all of them; `all`: one run each, at most the latest 100. `once` unless given. */
  readonly missed?: "skip" | "once" | "all" | undefined;
  /** A time at which an earlier run has not ended. `skip`: no run; `queue`: the run waits for the earlier one's end; `cancel`: the earlier one is cancelled. `skip` unless given. */
  readonly overlap?: "skip" | "queue" | "cancel" | undefined;
  /** How long after its time a run may begin, such as `90s` or `10m`, at most `1d`: how long follows from the schedule and the time, and it is before the next time. It spreads many schedules of the same time. `0` unless given. */
  readonly jitter?: string | undefined;
  /** The body of each trigger: credentials, inputs and metadata, as `POST /blueprints/{blueprintKey}/trigger` takes it, at most 64 KiB. */
  readonly trigger?: Readonly<Record<string, unknown>> | undefined;
}

/** The clock of a test account. */
export interface TestClock {
  /** The time by the clock of the test account. */
  readonly now: string;
}

/** Where the clock is moved to. */
export interface TestClockRequest {
  /** The time to move to, at most 400 days ahead. A time that has passed changes nothing. */
  readonly now: string;
}

/** What the trigger would have been answered by itself. */
export interface TriggerBatchAnswer {
  /** The status of the trigger: `202`, or that of its refusal. */
  readonly status: number;
  /** Whether its idempotency key was used before, and this is the answer of that time. */
  readonly replayed: boolean;
  /** When it may be sent again, where that is known; otherwise `null`. */
  readonly retry_after_seconds: number | null;
  readonly body: RunAccepted | ErrorEnvelope;
}

/** The answers to a batch. */
export interface TriggerBatchAnswers {
  /** One for each trigger, in their order. */
  readonly answers: readonly TriggerBatchAnswer[];
}

/** One trigger: its body, and what are headers of a single trigger. What it does not say is as the request's headers say. */
export interface TriggerBatchItem {
  /** As the header of a single trigger. */
  readonly idempotency_key?: string | undefined;
  /** As the header `Latchkey-Delay`. */
  readonly delay_seconds?: number | undefined;
  /** As the header `Latchkey-Priority`. */
  readonly priority?: number | undefined;
  /** As the header `Latchkey-Expires-In`. */
  readonly expires_in_seconds?: number | undefined;
  readonly trigger?: TriggerRequest | undefined;
}

/** Triggers of one Blueprint. */
export interface TriggerBatchRequest {
  /** 1 to 1000 triggers. They are checked and answered one by one. */
  readonly triggers: readonly TriggerBatchItem[];
}

/** The same keys as parts: the part's name is the key. An INPUT may be a file part or an inline string; a request may contain both kinds. */
export interface TriggerForm {
  /** One id, or several separated by commas; a repeated part adds to the list. */
  readonly credential_id?: string | undefined;
  /** An alias of `credential_id`; if both are given, their ids are combined. */
  readonly credential_ids?: string | undefined;
  /** The run's display name in the operator dashboard, at most 255 characters without U+0000. A value that is not a string is converted to one, like metadata. */
  readonly run_name?: string | undefined;
  /** If the key is an INPUT node's `refKey`, the value of that input. If it is the name of a metadata item, stored with the run as text. Any other key is ignored. An INPUT's part may be a file. */
  readonly [key: string]: unknown;
}

/** The Blueprint's inputs and metadata. Strings are passed unchanged, objects and arrays as JSON with the digits of numbers as written; a key with `null` counts as omitted. */
export interface TriggerRequest {
  /** The credentials with which the run logs in: one id, several ids separated by commas, or an array of ids. */
  readonly credential_id?: string | readonly string[] | null | undefined;
  /** An alias of `credential_id`; if both are given, their ids are combined. */
  readonly credential_ids?: string | readonly string[] | null | undefined;
  /** The run's display name in the operator dashboard, at most 255 characters without U+0000. A value that is not a string is converted to one, like metadata. */
  readonly run_name?: string | null | undefined;
  /** If the key is an INPUT node's `refKey`, the value of that input. If it is the name of a metadata item, stored with the run as text. Any other key is ignored. */
  readonly [key: string]: unknown;
}

/** A JSON Schema (2020-12) of an object, with all its keywords. */
export type TriggerSchema = Readonly<Record<string, unknown>>;

/** The body of a webhook, by its type. Ignore types that you do not know: more may be added. */
export type WebhookEvent = CredentialSessionEvent | EmbeddedCredentialSessionEvent | CredentialEvent | RunEvent | EndpointEvent | PingEvent;

/** Each operation's method, its path, and whether the path is below `/api/v1`. */
export const OPERATIONS = {
  /** Create a credential session */
  createCredentialSession: {"method":"POST","path":"/credential-sessions","isVersioned":true},
  /** Read a credential session */
  readCredentialSession: {"method":"GET","path":"/credential-sessions/{id}","isVersioned":true},
  /** Delete a credential */
  deleteCredential: {"method":"DELETE","path":"/credentials/{credentialId}","isVersioned":true},
  /** Trigger a run */
  triggerBlueprint: {"method":"POST","path":"/blueprints/{blueprintKey}/trigger","isVersioned":true},
  /** Read a run's status */
  readRunStatus: {"method":"GET","path":"/blueprint-runs/{runId}/status","isVersioned":true},
  /** Read a run's results */
  readRunResults: {"method":"GET","path":"/blueprint-runs/{runId}/results","isVersioned":true},
  /** Create an embedded credential session */
  createEmbeddedCredentialSession: {"method":"POST","path":"/embedded-credential-sessions","isVersioned":true},
  /** Read an embedded credential session */
  readEmbeddedCredentialSession: {"method":"GET","path":"/embedded-credential-sessions/{id}","isVersioned":true},
  /** Cancel a run */
  cancelRun: {"method":"POST","path":"/blueprint-runs/{runId}/cancel","isVersioned":true},
  /** Watch a run */
  watchRun: {"method":"GET","path":"/blueprint-runs/{runId}/events","isVersioned":true},
  /** Trigger many runs */
  triggerBlueprintBatch: {"method":"POST","path":"/blueprints/{blueprintKey}/trigger-batch","isVersioned":true},
  /** Read the schema of a trigger */
  readTriggerSchema: {"method":"GET","path":"/blueprints/{blueprintKey}/schema","isVersioned":true},
  /** Watch the account's events */
  watchEvents: {"method":"GET","path":"/events","isVersioned":true},
  /** Create or replace a schedule */
  putSchedule: {"method":"PUT","path":"/schedules/{scheduleKey}","isVersioned":true},
  /** Read a schedule */
  readSchedule: {"method":"GET","path":"/schedules/{scheduleKey}","isVersioned":true},
  /** Delete a schedule */
  deleteSchedule: {"method":"DELETE","path":"/schedules/{scheduleKey}","isVersioned":true},
  /** Move the test clock */
  putTestClock: {"method":"PUT","path":"/test-clock","isVersioned":true},
  /** Read the test clock */
  readTestClock: {"method":"GET","path":"/test-clock","isVersioned":true},
  /** Check whether the process is running */
  readLiveness: {"method":"GET","path":"/healthz","isVersioned":false},
  /** Check whether the service is ready */
  readReadiness: {"method":"GET","path":"/readyz","isVersioned":false},
} as const;
