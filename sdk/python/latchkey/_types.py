# Written by `npm run generate` from openapi/openapi.json.
from __future__ import annotations

from typing import Any, NotRequired, TypedDict, Union

class CreatedEmbeddedCredentialSession(TypedDict):
    """The new session, with the token that opens it."""

    #: The session's id.
    id: str
    #: The session's status. `completed` means that the session has ended and all credentials can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress.
    status: str
    #: The URL that the widget embeds, which contains no secret. `null` once the session is no longer `pending`.
    embed_url: Union[str, None]
    #: The origin of the only page that may embed the frame.
    origin: str
    #: The Blueprints to choose from.
    blueprint_keys: list[str]
    #: The chosen Blueprint; `null` until one is chosen.
    selected_blueprint_key: Union[str, None]
    #: The credential for the Blueprint's first or only slot; `null` until `status` is `completed`, then stable.
    credential_id: Union[str, None]
    #: The vaulted credentials, by slot. Complete once `status` is `completed`; those of an `expired` session can be deleted.
    credential_ids: dict[str, str]
    #: When the session expires: half an hour after it was created, unless another lifetime was requested.
    expires_at: str
    #: When the last credential was vaulted; `null` before that.
    completed_at: Union[str, None]
    #: When the session was created.
    created_at: str
    #: The token that your page passes to the widget and must not disclose to anyone else. Only returned here, and in replays of this answer.
    client_token: str

class CredentialEvent(TypedDict):
    """What happened to a credential."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: dict[str, Any]

class CredentialSession(TypedDict):
    """A short-lived hosted form that collects an end user's credentials."""

    #: The session's id.
    id: str
    #: The session's status. `completed` means that the session has ended and the credential can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress.
    status: str
    #: The URL of the form for the end user; `null` once the session is no longer `pending`.
    hosted_url: Union[str, None]
    #: As given when the session was created; `null` if none was given.
    return_url: Union[str, None]
    #: The authentication strategy (`strat_...`) whose fields the hosted form shows.
    strategy_id: str
    #: The vaulted credential; `null` until `status` is `completed`, then stable. Store it only then.
    credential_id: Union[str, None]
    #: When the session expires: 7 days after it was created, unless the account defines another lifetime.
    expires_at: str
    #: When the end user submitted the form; `null` before that.
    completed_at: Union[str, None]
    #: When the session was created.
    created_at: str
    #: Extension: as given when the session was created. Only present if it was.
    metadata: NotRequired[dict[str, str]]
    #: Extension: as given when the session was created. Only present if it was.
    cancel_url: NotRequired[str]

class CredentialSessionEvent(TypedDict):
    """What became of a credential session."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: CredentialSession

class CredentialSessionRequest(TypedDict):
    """The parameters of a new session. Other keys are ignored."""

    #: The authentication strategy (`strat_...`) whose fields the hosted form shows.
    strategy_id: str
    #: Label of the vaulted credential in the operator dashboard. Never returned. At most 255 characters, without U+0000.
    name: NotRequired[Union[str, None]]
    #: The URL to which the end user is redirected after submitting the form, with `session_id` appended. Its exact origin (scheme, host, port) must be on the account's allowlist; path and query are arbitrary.
    return_url: NotRequired[Union[str, None]]
    #: Extension: the URL to which the form's link “Cancel” leads, with `session_id` appended. The rules of `return_url` apply. The session stays `pending`.
    cancel_url: NotRequired[Union[str, None]]
    #: Extension: your own references, returned with the session. At most 20 items; names have at most 40 of the characters A-Z, a-z, 0-9, `_`, `.` and `-`, values at most 500 characters. Nothing secret belongs here.
    metadata: NotRequired[Union[dict[str, str], None]]
    #: Extension: how long the session lasts, at most as long as the account's sessions do.
    expires_in_seconds: NotRequired[Union[int, None]]

class DirectRunResults(TypedDict):
    """Inline results."""

    #: The method that was used.
    dataDeliveryMethod: str
    #: The records, by the output node's reference key, or `<node_ref>.<handle_key>` when the node has several output handles.
    results: dict[str, ResultSet]
    executionMetadata: ExecutionMetadata

class EmbeddedCredentialSession(TypedDict):
    """A short-lived flow in an embedded frame that collects the credentials for one Blueprint."""

    #: The session's id.
    id: str
    #: The session's status. `completed` means that the session has ended and all credentials can be used; `expired` is terminal, too. Known values: `pending`, `completed`, `expired`. An open set: treat an unknown value like a state in progress.
    status: str
    #: The URL that the widget embeds, which contains no secret. `null` once the session is no longer `pending`.
    embed_url: Union[str, None]
    #: The origin of the only page that may embed the frame.
    origin: str
    #: The Blueprints to choose from.
    blueprint_keys: list[str]
    #: The chosen Blueprint; `null` until one is chosen.
    selected_blueprint_key: Union[str, None]
    #: The credential for the Blueprint's first or only slot; `null` until `status` is `completed`, then stable.
    credential_id: Union[str, None]
    #: The vaulted credentials, by slot. Complete once `status` is `completed`; those of an `expired` session can be deleted.
    credential_ids: dict[str, str]
    #: When the session expires: half an hour after it was created, unless another lifetime was requested.
    expires_at: str
    #: When the last credential was vaulted; `null` before that.
    completed_at: Union[str, None]
    #: When the session was created.
    created_at: str

class EmbeddedCredentialSessionEvent(TypedDict):
    """What became of an embedded credential session."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: EmbeddedCredentialSession

class EmbeddedCredentialSessionRequest(TypedDict):
    """The parameters of a new embedded session. Other keys are ignored."""

    #: Scheme, host and port of the page that embeds the frame, which must be one of the account's origins for embedding. No other page can embed it.
    origin: str
    #: The Blueprints that the end user can choose from, in this order. With a single one, the frame starts with its form. Default: all Blueprints of the account that need a credential.
    blueprint_keys: NotRequired[Union[list[str], None]]
    #: Label of the vaulted credentials in the operator dashboard. Never returned. At most 255 characters, without U+0000.
    name: NotRequired[Union[str, None]]
    #: The language of the frame, as a BCP 47 tag; an unsupported one is ignored. Default: the browser's language.
    locale: NotRequired[Union[str, None]]
    #: How long the frame can be used. Default: half an hour.
    expires_in_seconds: NotRequired[Union[int, None]]

class EndpointEvent(TypedDict):
    """What happened to another endpoint of the account."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: dict[str, Any]

class ErrorEnvelope(TypedDict):
    """The envelope of every failure: the single top-level key `error`."""

    error: ErrorObject

class ErrorDetail(TypedDict):
    """One problem with the request."""

    #: An explanation for people.
    message: str
    #: Machine-readable code: `invalid_input_data` (a field is malformed, names an unknown resource or doesn't match its format), `idempotency_key_reuse` (the `Idempotency-Key` was used earlier with a different request), `idempotency_key_in_use` (a request with this `Idempotency-Key` is still being processed), `run_data_purged` (the data of the run has been purged), `queued_runs_quota` (the account has reached its limit of waiting runs), `stored_bytes_quota` (the account has reached its limit of stored bytes).
    code: NotRequired[Union[str, None]]
    #: The offending field in dot notation, as the caller wrote it; the name of a header or query parameter.
    field: NotRequired[Union[str, None]]

class ErrorObject(TypedDict):
    """The error."""

    #: The kind of failure.
    type: str
    #: An explanation for people. Code must not depend on it.
    message: str
    #: The problems, one by one; omitted if there is nothing to name.
    details: NotRequired[list[ErrorDetail]]

class ExecutionMetadata(TypedDict):
    """Information about the run itself."""

    #: The run's key, a UUID. It can be used instead of the run's id in any path.
    runKey: str
    #: The run's stored metadata: text by name.
    metadata: dict[str, str]
    timings: ExecutionTimings

class ExecutionTimings(TypedDict):
    """When the run was executed."""

    #: The run's `started_at`.
    executionBeganAt: str
    #: The run's `ended_at`.
    executionCompletedAt: str

class Health(TypedDict):
    """The state of the process."""

    #: The state of the process, in a word or two.
    status: str

class PingEvent(TypedDict):
    """A test, sent by an operator."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: dict[str, Any]

class PresignedRunResults(TypedDict):
    """Where the results can be downloaded."""

    #: The method that was used.
    dataDeliveryMethod: str
    #: Download URLs, by the output node's reference key, or `<node_ref>.<handle_key>` when the node has several output handles.
    results: dict[str, str]
    executionMetadata: ExecutionMetadata

class Readiness(TypedDict):
    """Whether the process can work, and what is in its way."""

    #: The state of the process, in a word or two.
    status: str
    #: The disks that had no room for a write in the last half minute. Missing: none.
    disk_full: NotRequired[list[str]]

class RecordError(TypedDict):
    """A rule that a record violates."""

    #: The field of `data` in dot notation; `null` for the record as a whole.
    field: Union[str, None]
    #: Machine-readable code of the rule.
    code: str
    #: What is wrong, for people.
    message: str

class ResultRecord(TypedDict):
    """One record of an output."""

    #: The output fields of the Blueprint.
    data: dict[str, Any]
    #: Empty when the record is valid.
    errors: list[RecordError]
    #: Whether the record has no errors.
    isValid: bool

class ResultSet(TypedDict):
    """The records of one result key; also the content of a presigned download."""

    #: The number of records.
    totalRecords: int
    #: All records.
    records: list[ResultRecord]

class RunAccepted(TypedDict):
    """A run that is queued."""

    #: The run's id.
    id: str
    #: The run's key, a UUID. It can be used instead of the run's id in any path.
    run_key: str
    #: Always `queued`: the run has not started.
    status: str

class RunError(TypedDict):
    """Why the run failed."""

    #: Currently `execution_failed` for every failed run. An open set: treat an unknown code as a failure that may be retried.
    code: str
    #: One of a few fixed sentences; never contains data of the run.
    message: str

class RunEvent(TypedDict):
    """What happened to a run. Its results are fetched with an API key."""

    #: The type of the event.
    type: str
    #: When it happened. Events may arrive in any order.
    timestamp: str
    data: RunStatus

class RunStatus(TypedDict):
    """The status of a run, without inputs, outputs, file URLs or raw errors."""

    #: The run's id.
    id: str
    #: The run's key, a UUID. It can be used instead of the run's id in any path.
    run_key: str
    #: The run's status. `completed`, `failed` and `cancelled` are terminal. Known values: `queued`, `running`, `completed`, `failed`, `cancelled`. An open set: treat an unknown value like a state in progress.
    status: str
    #: The step within the status; a Blueprint may define additional milestones. Known values: `queued`, `authenticating`, `running`, `awaiting_review`, `completed`, `failed`, `cancelled`, `unknown`. An open set: treat an unknown value like a state in progress.
    progress_step: str
    #: When the run was triggered.
    created_at: str
    #: When `status` became `running`; `null` before that, and if the login failed.
    started_at: Union[str, None]
    #: When the run ended; `null` before that.
    ended_at: Union[str, None]
    #: Present only if `status` is `failed`.
    error: Union[RunError, None]
    #: The Blueprint that the run executes.
    blueprint_id: str

class Schedule(TypedDict):
    """A schedule. Like a run's status it has nothing of the trigger's body."""

    #: Your key.
    key: str
    #: The Blueprint's trigger key.
    blueprint_key: str
    #: Minute, hour, day of the month, month, day of the week.
    cron: str
    #: An IANA time zone.
    time_zone: str
    #: Times that passed while no worker was there. `skip`: none; `once`: one run for all of them; `all`: one run each, at most the latest 100. Known values: `skip`, `once`, `all`. An open set: treat an unknown value like a state in progress.
    missed: str
    #: A time at which an earlier run has not ended. `skip`: no run; `queue`: the run waits for the earlier one's end; `cancel`: the earlier one is cancelled. Known values: `skip`, `queue`, `cancel`. An open set: treat an unknown value like a state in progress.
    overlap: str
    #: How long after its time a run may begin, such as `90s` or `10m`, at most `1d`: how long follows from the schedule and the time, and it is before the next time. It spreads many schedules of the same time.
    jitter: str
    #: Whether it begins runs. Known values: `active`, `paused`. An open set: treat an unknown value like a state in progress.
    status: str
    #: Why it is paused; `null`: it is active. `credential_locked` ends by itself, and `operator` when an operator resumes it; after any other reason, put it again.
    paused_reason: Union[str, None]
    #: When the locked credential is used again; `null` for other reasons.
    paused_until: Union[str, None]
    #: Why its trigger was refused.
    paused_detail: Union[str, None]
    #: Its next time; `null` while it is paused.
    next_at: Union[str, None]
    last: Union[ScheduleFire, None]
    #: When it was created.
    created_at: str
    #: When it last changed.
    updated_at: str

class ScheduleFire(TypedDict):
    """The last time about which something was decided."""

    #: The time.
    due_at: str
    #: What became of it. Known values: `run`, `manual`, `missed`, `overlap`, `credential_locked`, `refused`. An open set: treat an unknown value like a state in progress.
    outcome: str
    #: The run, if there is one.
    run_id: Union[str, None]

class ScheduleRequest(TypedDict):
    """When a Blueprint runs, and with what."""

    #: The Blueprint's trigger key.
    blueprint_key: str
    #: Minute, hour, day of the month, month, day of the week.
    cron: str
    #: An IANA time zone.
    time_zone: str
    #: Times that passed while no worker was there. `skip`: none; `once`: one run for all of them; `all`: one run each, at most the latest 100. `once` unless given.
    missed: NotRequired[str]
    #: A time at which an earlier run has not ended. `skip`: no run; `queue`: the run waits for the earlier one's end; `cancel`: the earlier one is cancelled. `skip` unless given.
    overlap: NotRequired[str]
    #: How long after its time a run may begin, such as `90s` or `10m`, at most `1d`: how long follows from the schedule and the time, and it is before the next time. It spreads many schedules of the same time. `0` unless given.
    jitter: NotRequired[str]
    #: The body of each trigger: credentials, inputs and metadata, as `POST /blueprints/{blueprintKey}/trigger` takes it, at most 64 KiB.
    trigger: NotRequired[dict[str, Any]]

class TestClock(TypedDict):
    """The clock of a test account."""

    #: The time by the clock of the test account.
    now: str

class TestClockRequest(TypedDict):
    """Where the clock is moved to."""

    #: The time to move to, at most 400 days ahead. A time that has passed changes nothing.
    now: str

class TriggerBatchAnswer(TypedDict):
    """What the trigger would have been answered by itself."""

    #: The status of the trigger: `202`, or that of its refusal.
    status: int
    #: Whether its idempotency key was used before, and this is the answer of that time.
    replayed: bool
    #: When it may be sent again, where that is known; otherwise `null`.
    retry_after_seconds: Union[int, None]
    body: Union[RunAccepted, ErrorEnvelope]

class TriggerBatchAnswers(TypedDict):
    """The answers to a batch."""

    #: One for each trigger, in their order.
    answers: list[TriggerBatchAnswer]

class TriggerBatchItem(TypedDict):
    """One trigger: its body, and what are headers of a single trigger. What it does not say is as the request's headers say."""

    #: As the header of a single trigger.
    idempotency_key: NotRequired[str]
    #: As the header `Latchkey-Delay`.
    delay_seconds: NotRequired[int]
    #: As the header `Latchkey-Priority`.
    priority: NotRequired[int]
    #: As the header `Latchkey-Expires-In`.
    expires_in_seconds: NotRequired[int]
    trigger: NotRequired[TriggerRequest]

class TriggerBatchRequest(TypedDict):
    """Triggers of one Blueprint."""

    #: 1 to 1000 triggers. They are checked and answered one by one.
    triggers: list[TriggerBatchItem]

#: Events as webhooks have them: the type of each is its `type`, its `id` is the `webhook-id`, and its `data` is one line with the JSON of the webhook's body. Lines that begin with `:` are comments and must be ignored.
AccountEventStream = str

#: Events of the type `status`. The `data` of each is one line with the JSON of the schema `RunStatus`; its `id` increases with every change of `status` or `progress_step`. Lines that begin with `:` are comments and must be ignored.
RunEventStream = str

#: The outputs of a completed run, in one of two forms: `dataDeliveryMethod` says which.
RunResults = Union[DirectRunResults, PresignedRunResults]

#: The same keys as parts: the part's name is the key. An INPUT may be a file part or an inline string; a request may contain both kinds.
TriggerForm = dict[str, Any]

#: The Blueprint's inputs and metadata. Strings are passed unchanged, objects and arrays as JSON with the digits of numbers as written; a key with `null` counts as omitted.
TriggerRequest = dict[str, Any]

#: A JSON Schema (2020-12) of an object, with all its keywords.
TriggerSchema = dict[str, Any]

#: The body of a webhook, by its type. Ignore types that you do not know: more may be added.
WebhookEvent = Union[CredentialSessionEvent, EmbeddedCredentialSessionEvent, CredentialEvent, RunEvent, EndpointEvent, PingEvent]

#: Each operation's method, its path, and whether the path is below `/api/v1`.
OPERATIONS: dict[str, tuple[str, str, bool]] = {
    "createCredentialSession": ("POST", "/credential-sessions", True),
    "readCredentialSession": ("GET", "/credential-sessions/{id}", True),
    "deleteCredential": ("DELETE", "/credentials/{credentialId}", True),
    "triggerBlueprint": ("POST", "/blueprints/{blueprintKey}/trigger", True),
    "readRunStatus": ("GET", "/blueprint-runs/{runId}/status", True),
    "readRunResults": ("GET", "/blueprint-runs/{runId}/results", True),
    "createEmbeddedCredentialSession": ("POST", "/embedded-credential-sessions", True),
    "readEmbeddedCredentialSession": ("GET", "/embedded-credential-sessions/{id}", True),
    "cancelRun": ("POST", "/blueprint-runs/{runId}/cancel", True),
    "watchRun": ("GET", "/blueprint-runs/{runId}/events", True),
    "triggerBlueprintBatch": ("POST", "/blueprints/{blueprintKey}/trigger-batch", True),
    "readTriggerSchema": ("GET", "/blueprints/{blueprintKey}/schema", True),
    "watchEvents": ("GET", "/events", True),
    "putSchedule": ("PUT", "/schedules/{scheduleKey}", True),
    "readSchedule": ("GET", "/schedules/{scheduleKey}", True),
    "deleteSchedule": ("DELETE", "/schedules/{scheduleKey}", True),
    "putTestClock": ("PUT", "/test-clock", True),
    "readTestClock": ("GET", "/test-clock", True),
    "readLiveness": ("GET", "/healthz", False),
    "readReadiness": ("GET", "/readyz", False),
}
