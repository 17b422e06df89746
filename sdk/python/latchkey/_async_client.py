from __future__ import annotations

import asyncio
import functools
import random
import time
from typing import Any, AsyncIterator, Awaitable, Callable, Mapping, TypeVar

import brotli
import httpx

from . import _request
from ._errors import ApiError, ConnectionFailedError, LatchkeyError, ServerError, WaitTimeoutError
from ._read import EventReader, RecordReader
from ._request import Call
from ._types import (
    CreatedEmbeddedCredentialSession,
    CredentialSession,
    CredentialSessionRequest,
    EmbeddedCredentialSession,
    EmbeddedCredentialSessionRequest,
    Health,
    ResultRecord,
    RunAccepted,
    RunResults,
    RunStatus,
    WebhookEvent,
    Schedule,
    ScheduleRequest,
    TestClockRequest,
    TriggerBatchAnswers,
    TriggerBatchRequest,
)
from ._types import TestClock as Clock

_Result = TypeVar("_Result")
_State = TypeVar("_State", CredentialSession, EmbeddedCredentialSession, RunStatus)

#: How often in a row a download may break without a byte of progress.
_FAILURES_MAX = 5


class AsyncLatchkey:
    """Latchkey's API, from a backend.

    `api_key` is a key of your account, `base_url` the URL of your Latchkey, with or without `/api/v1`. `timeout` is in
    seconds, of one attempt; a failed request is repeated up to `max_retries` times. `http_client` replaces httpx's own.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        timeout: float = 60.0,
        max_retries: int = 3,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        connection = _AsyncConnection(api_key, base_url, timeout, max_retries, http_client)
        self._connection = connection
        self.credential_sessions = AsyncCredentialSessions(connection)
        self.embedded_credential_sessions = AsyncEmbeddedCredentialSessions(connection)
        self.credentials = AsyncCredentials(connection)
        self.blueprints = AsyncBlueprints(connection)
        self.runs = AsyncRuns(connection)
        self.events = AsyncEvents(connection)
        self.schedules = AsyncSchedules(connection)
        self.test_clock = AsyncTestClock(connection)

    async def read_liveness(self) -> Health:
        """Whether the process is running."""
        return await self._connection.json(Call("readLiveness"))

    async def read_readiness(self) -> Health:
        """Whether the service is ready for requests; raises ServerError if not."""
        return await self._connection.json(Call("readReadiness"))

    async def close(self) -> None:
        """Closes the connections, unless `http_client` was given."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncLatchkey:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncEvents:
    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def watch(self) -> AsyncIterator[WebhookEvent]:
        """Each event of the account from now on, as a webhook has it. Reconnects when the connection is cut: an event may then
        come twice."""
        reader = EventReader()
        while True:
            headers = {"Accept": "text/event-stream"}
            if reader.last_id:
                headers["Last-Event-ID"] = reader.last_id
            response = await self._connection.stream(Call("watchEvents", headers=headers))
            try:
                async for line in response.aiter_lines():
                    event = reader.push(line.rstrip("\r\n"))
                    if event is not None:
                        yield event
            except httpx.TransportError:
                pass
            finally:
                await response.aclose()
            await asyncio.sleep(random.random())


class _AsyncConnection:
    """Sends requests: with the API key, a time limit, and retries that keep their idempotency key."""

    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: float,
        max_retries: int,
        http_client: httpx.AsyncClient | None,
    ) -> None:
        self._api_key = _request.check_key(api_key)
        self._root = _request.root_of(base_url)
        self._max_retries = max_retries
        self._timeout = timeout
        self._is_own = http_client is None
        self.http = http_client or httpx.AsyncClient()

    async def json(self, call: Call) -> Any:
        return await self.send(call, _request.json_of)

    async def send(self, call: Call, read: Callable[[httpx.Response], _Result]) -> _Result:
        async def read_whole(response: httpx.Response) -> _Result:
            try:
                await response.aread()
                return read(response)
            finally:
                await response.aclose()

        return await self._repeat(call, read_whole)

    async def stream(self, call: Call) -> httpx.Response:
        """The response as soon as its headers are there. Close it."""

        async def opened(response: httpx.Response) -> httpx.Response:
            return response

        return await self._repeat(call, opened)

    async def close(self) -> None:
        if self._is_own:
            await self.http.aclose()

    async def _repeat(self, call: Call, read: Callable[[httpx.Response], Awaitable[_Result]]) -> _Result:
        arguments = _request.request_of(self._root, self._api_key, call)
        attempt = 0
        while True:
            try:
                return await self.attempt(arguments, read)
            except LatchkeyError as error:
                pause = _request.pause_before(error, attempt)
                if pause is None or attempt >= self._max_retries:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def attempt(
        self,
        arguments: Mapping[str, Any],
        read: Callable[[httpx.Response], Awaitable[_Result]],
    ) -> _Result:
        request = self.http.build_request(timeout=self._timeout, **arguments)
        try:
            response = await self.http.send(request, stream=True, follow_redirects=False)
            if response.status_code >= 300:
                await response.aread()
                await response.aclose()
                _request.raise_for(response)
            return await read(response)
        except httpx.TransportError as error:
            raise _request.failed(error)


class AsyncCredentialSessions:
    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self, request: CredentialSessionRequest, *, idempotency_key: str | None = None
    ) -> CredentialSession:
        """Creates a form for one end user. Send the user to `hosted_url`."""
        call = Call("createCredentialSession", body=request, idempotency_key=idempotency_key)
        return await self._connection.json(call)

    async def read(self, id: str) -> CredentialSession:
        return await self._connection.json(Call("readCredentialSession", {"id": id}))

    async def wait_for(
        self,
        id: str,
        *,
        timeout: float = _request.WAIT_SECONDS,
        on_change: Callable[[CredentialSession], None] | None = None,
    ) -> CredentialSession:
        """Polls until the session is `completed` or `expired`. Raises WaitTimeoutError after `timeout` seconds."""
        return await _poll(lambda: self.read(id), _request.is_terminal_session, timeout, on_change)


class AsyncEmbeddedCredentialSessions:
    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self, request: EmbeddedCredentialSessionRequest, *, idempotency_key: str | None = None
    ) -> CreatedEmbeddedCredentialSession:
        """Creates a flow for a frame in your page. Pass `client_token` and `embed_url` to the widget."""
        call = Call("createEmbeddedCredentialSession", body=request, idempotency_key=idempotency_key)
        return await self._connection.json(call)

    async def read(self, id: str) -> EmbeddedCredentialSession:
        return await self._connection.json(Call("readEmbeddedCredentialSession", {"id": id}))

    async def wait_for(
        self,
        id: str,
        *,
        timeout: float = _request.WAIT_SECONDS,
        on_change: Callable[[EmbeddedCredentialSession], None] | None = None,
    ) -> EmbeddedCredentialSession:
        """Polls until the session is `completed` or `expired`. Raises WaitTimeoutError after `timeout` seconds."""
        return await _poll(lambda: self.read(id), _request.is_terminal_session, timeout, on_change)


class AsyncCredentials:
    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def delete(self, id: str, *, idempotency_key: str | None = None) -> None:
        """Destroys the stored secrets. Raises NotFoundError if the credential does not exist."""
        call = Call("deleteCredential", {"credentialId": id}, idempotency_key=idempotency_key)
        await self._connection.send(call, lambda _: None)


class AsyncSchedules:
    """Runs that begin by the clock. `key` is yours, such as one per connection."""

    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def put(self, key: str, schedule: ScheduleRequest) -> Schedule:
        """Creates or replaces the schedule; the same request again changes nothing."""
        return await self._connection.json(Call("putSchedule", {"scheduleKey": key}, body=schedule))

    async def read(self, key: str) -> Schedule:
        """Raises NotFoundError if there is none."""
        return await self._connection.json(Call("readSchedule", {"scheduleKey": key}))

    async def delete(self, key: str) -> None:
        """Runs that it began go on. Raises NotFoundError if there is none."""
        await self._connection.send(Call("deleteSchedule", {"scheduleKey": key}), lambda _: None)


class AsyncTestClock:
    """The clock of a test account: only for keys of test mode."""

    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def read(self) -> Clock:
        return await self._connection.json(Call("readTestClock"))

    async def put(self, clock: TestClockRequest) -> Clock:
        """Moves it forward; a time that has passed changes nothing."""
        return await self._connection.json(Call("putTestClock", body=clock))


class AsyncBlueprints:
    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def trigger(
        self,
        blueprint_key: str,
        input: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        on_ignored_keys: Callable[[list[str]], None] | None = None,
        delay_seconds: int | None = None,
        priority: int | None = None,
        expires_in_seconds: int | None = None,
    ) -> RunAccepted:
        """Queues a run.

        `input` holds inputs, metadata and the reserved keys; a value may be bytes or an open file: then the request is
        multipart/form-data. `on_ignored_keys` is called with the keys that the Blueprint does not know, such as
        misspelled ones. The run may begin after `delay_seconds` (at most 30 days); among the account's waiting runs,
        those with a higher `priority` (-10 to 10, otherwise 0) begin first; a run that has not begun within
        `expires_in_seconds` of the trigger (at most 60 days) fails.
        """
        call = Call(
            "triggerBlueprint",
            {"blueprintKey": blueprint_key},
            headers=_request.trigger_headers(
                reports_ignored_keys=on_ignored_keys is not None,
                delay_seconds=delay_seconds,
                priority=priority,
                expires_in_seconds=expires_in_seconds,
            ),
            body=input or {},
            idempotency_key=idempotency_key,
        )

        def read(response: httpx.Response) -> RunAccepted:
            ignored = _request.ignored_keys(response)
            if ignored and on_ignored_keys is not None:
                on_ignored_keys(ignored)
            return _request.json_of(response)

        return await self._connection.send(call, read)

    async def trigger_batch(
        self,
        blueprint_key: str,
        batch: TriggerBatchRequest,
        *,
        idempotency_key: str | None = None,
    ) -> TriggerBatchAnswers:
        """Sends up to 1,000 triggers in one request.

        Each is answered by itself, in their order: look at the `status` of each. A trigger without an
        `idempotency_key` is identified by the key of the call and its place.
        """
        call = Call(
            "triggerBlueprintBatch",
            {"blueprintKey": blueprint_key},
            body=batch,
            idempotency_key=idempotency_key,
        )
        return await self._connection.json(call)

    async def read_schema(self, blueprint_key: str) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the trigger's input."""
        return await self._connection.json(Call("readTriggerSchema", {"blueprintKey": blueprint_key}))


class AsyncRuns:
    """`id` is a run's id (`run_…`) or its run key."""

    def __init__(self, connection: _AsyncConnection) -> None:
        self._connection = connection

    async def read_status(self, id: str, *, wait_seconds: int | None = None) -> RunStatus:
        """With `wait_seconds`, the response comes once the status has changed, or after that time (at most 60)."""
        headers = {} if wait_seconds is None else {"Prefer": f"wait={wait_seconds}"}
        return await self._connection.json(Call("readRunStatus", {"runId": id}, headers=headers))

    async def read_results(self, id: str, *, delivery_method: str | None = None) -> RunResults:
        """Raises ConflictError unless the run is `completed`.

        `delivery_method` is `direct` or `presigned_url`; `direct` results of 5 MB and more come as links all the same.
        """
        call = Call("readRunResults", {"runId": id}, query={"deliveryMethod": delivery_method})
        return await self._connection.json(call)

    async def cancel(self, id: str, *, idempotency_key: str | None = None) -> RunStatus:
        """Raises ConflictError if the run has already ended."""
        return await self._connection.json(Call("cancelRun", {"runId": id}, idempotency_key=idempotency_key))

    async def watch(self, id: str) -> AsyncIterator[RunStatus]:
        """Each new state of the run, until the terminal one. Reconnects when the connection is cut."""
        reader = EventReader()
        while True:
            headers = {"Accept": "text/event-stream"}
            if reader.last_id:
                headers["Last-Event-ID"] = reader.last_id
            response = await self._connection.stream(Call("watchRun", {"runId": id}, headers=headers))
            try:
                if response.status_code == 204:
                    return
                async for line in response.aiter_lines():
                    run = reader.push(line.rstrip("\r\n"))
                    if run is not None:
                        yield run
                        if _request.is_terminal_run(run):
                            return
            except httpx.TransportError:
                pass
            finally:
                await response.aclose()
            await asyncio.sleep(random.random())

    async def wait_for(
        self,
        id: str,
        *,
        timeout: float = _request.WAIT_SECONDS,
        on_change: Callable[[RunStatus], None] | None = None,
    ) -> RunStatus:
        """Waits until the run has ended: `completed`, `failed` or `cancelled`. Raises WaitTimeoutError."""
        seconds = max(0, min(_request.HOLD_SECONDS, int(timeout)))
        read = functools.partial(self.read_status, id, wait_seconds=seconds)
        return await _poll(read, _request.is_terminal_run, timeout, on_change)

    async def records(self, id: str, key: str | None = None) -> AsyncIterator[ResultRecord]:
        """The records under one result key, one by one, however many there are: few of them are in memory.

        `key` can be omitted if the run has a single result. A download that is cut goes on where it stopped.
        """
        results = await self.read_results(id, delivery_method="direct")
        chosen = _request.choose_key(list(results["results"]), key)
        content = results["results"][chosen]
        if not isinstance(content, str):
            for record in content["records"]:
                yield record
            return
        reader = RecordReader()
        decompressor = brotli.Decompressor()
        async for chunk in self._download(id, chosen, content):
            for record in reader.push(decompressor.process(chunk)):
                yield record
        if not reader.is_at_end:
            raise LatchkeyError("The download ended before its last record")

    async def _download(self, id: str, key: str, link: str) -> AsyncIterator[bytes]:
        received = failures = 0
        while True:
            cause: Exception | None = None
            try:
                response = await self._open_download(link, received)
                try:
                    skip = received if received > 0 and response.status_code != 206 else 0
                    total = _total_bytes(response)
                    async for chunk in response.aiter_raw():
                        news, skip = chunk[skip:], max(0, skip - len(chunk))
                        if news:
                            received += len(news)
                            failures = 0
                            yield news
                finally:
                    await response.aclose()
                if total is None or received >= total:
                    return
            except httpx.TransportError as error:
                cause = error
            except (ConnectionFailedError, ServerError) as error:
                cause = error
            except ApiError as error:
                if error.status != 403:
                    raise
                cause = error
                # The link has expired.
                link = (await self.read_results(id, delivery_method="presigned_url"))["results"][key]
            failures += 1
            if failures > _FAILURES_MAX:
                raise ConnectionFailedError("The download was interrupted") from cause
            await asyncio.sleep(random.random() * _request.PAUSE_SECONDS * 2**failures)

    async def _open_download(self, link: str, received: int) -> httpx.Response:
        async def opened(response: httpx.Response) -> httpx.Response:
            return response

        # Without the API key, which a download does not need.
        headers = {"Range": f"bytes={received}-"} if received > 0 else {}
        return await self._connection.attempt({"method": "GET", "url": link, "headers": headers}, opened)


def _total_bytes(response: httpx.Response) -> int | None:
    """The size of the whole download, not of the part that is sent."""
    headers = response.headers
    if response.status_code == 206:
        size = headers.get("content-range", "").rpartition("/")[2]
    else:
        size = headers.get("content-length", "")
    return int(size) if size.isdigit() else None


async def _poll(
    read: Callable[[], Awaitable[_State]],
    is_terminal: Callable[[Mapping[str, Any]], bool],
    timeout: float,
    on_change: Callable[[_State], None] | None,
) -> _State:
    """Reads until `is_terminal`, also while the service is restarted. Raises WaitTimeoutError."""
    until = time.monotonic() + timeout
    last: _State | None = None
    while True:
        try:
            state = await read()
            if on_change is not None and (last is None or state["status"] != last["status"]):
                on_change(state)
            if is_terminal(state):
                return state
            last = state
            if time.monotonic() + _request.POLL_SECONDS > until:
                message = f"{state['id']} is still {state['status']} after {timeout} s"
                raise WaitTimeoutError(message, state)
        except (ConnectionFailedError, ServerError):
            if time.monotonic() + _request.POLL_SECONDS > until:
                raise
        await asyncio.sleep(_request.POLL_SECONDS)
