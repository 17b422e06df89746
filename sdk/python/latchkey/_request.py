"""What requests are made of, with and without asyncio."""

from __future__ import annotations

import json
import random
import re
import uuid
from dataclasses import dataclass, field
from typing import Any, Mapping
from urllib.parse import quote, unquote

import httpx

from ._errors import ApiError, ConnectionFailedError, LatchkeyError, error_of
from ._types import OPERATIONS

PAUSE_SECONDS = 0.5
PAUSE_MAX_SECONDS = 8.0
#: A longer `Retry-After` is the caller's decision.
RETRY_AFTER_MAX_SECONDS = 60.0
#: The interface's interval (`spec/interface.md`, Limits).
POLL_SECONDS = 2.0
WAIT_SECONDS = 600.0
#: How long one request waits for a change of a run.
HOLD_SECONDS = 20

_TERMINAL_SESSION = {"completed", "expired"}
_TERMINAL_RUN = {"completed", "failed", "cancelled"}


@dataclass(frozen=True)
class Call:
    operation: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | None] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    #: None: no body. A dict with a file among its values is sent as multipart/form-data, another one as JSON.
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None


def root_of(base_url: str) -> str:
    url = re.sub(r"[?#].*$", "", base_url)
    if not re.match(r"https?://[^/]+", url):
        raise LatchkeyError("base_url is not a URL: pass one such as https://connect.example.com")
    return re.sub(r"/api/v1$", "", url.rstrip("/"))


def check_key(api_key: str) -> str:
    if not re.fullmatch(r"\S+", api_key or ""):
        raise LatchkeyError("api_key is missing: pass a key of your account, lk_…")
    return api_key


def request_of(root: str, api_key: str, call: Call) -> dict[str, Any]:
    """The arguments of httpx's `build_request`. The idempotency key is the same for all attempts."""
    method, path, is_versioned = OPERATIONS[call.operation]
    filled = re.sub(r"\{(\w+)\}", lambda name: quote(call.parameters[name[1]], safe=""), path)
    headers = {"Accept": "application/json", "Authorization": f"Bearer {api_key}", **call.headers}
    if method != "GET":
        headers["Idempotency-Key"] = call.idempotency_key or str(uuid.uuid4())
    request: dict[str, Any] = {
        "method": method,
        "url": f"{root}{'/api/v1' if is_versioned else ''}{filled}",
        "params": {name: value for name, value in call.query.items() if value is not None},
        "headers": headers,
    }
    if call.body is not None:
        request |= _body_of(call.body)
    return request


def _body_of(body: Mapping[str, Any]) -> dict[str, Any]:
    files = {key: value for key, value in body.items() if _is_file(value)}
    if not files:
        return {"json": dict(body)}
    texts = {key: _text_of(key, value) for key, value in body.items() if value is not None and key not in files}
    # Bytes, so that an attempt can be repeated.
    return {"data": texts, "files": {key: _file_of(key, value) for key, value in files.items()}}


def _is_file(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray)) or hasattr(value, "read")


def _file_of(key: str, value: Any) -> tuple[str, bytes]:
    content = bytes(value) if isinstance(value, (bytes, bytearray)) else value.read()
    name = getattr(value, "name", key)
    file_name = re.split(r"[/\\]", name)[-1] if isinstance(name, str) else key
    return file_name, content if isinstance(content, bytes) else content.encode()


def _text_of(key: str, value: Any) -> str:
    """The same values as JSON would have (docs/api.md, Triggers): text unchanged, everything else as JSON."""
    if isinstance(value, str):
        return value
    if key in ("credential_id", "credential_ids"):
        return ",".join(value)
    return json.dumps(value)


def raise_for(response: httpx.Response) -> None:
    """Call it once the body of an error has been read."""
    status, headers = response.status_code, response.headers
    if 300 <= status < 400:
        place = httpx.URL(response.url).join(headers.get("location", "/"))
        raise LatchkeyError(f"base_url redirects to {place.scheme}://{place.netloc.decode()}: use that URL instead")
    if status >= 400:
        raise error_of(status, headers.get("x-request-id"), headers.get("retry-after", ""), response.text)


def json_of(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        message = "The response is not JSON, so it is not from Latchkey: check base_url"
        raise LatchkeyError(message) from None


def failed(cause: BaseException) -> ConnectionFailedError:
    error = ConnectionFailedError("The request failed without a response")
    error.__cause__ = cause
    return error


def pause_before(error: LatchkeyError, attempt: int) -> float | None:
    """Seconds to wait before the request is repeated; None if repeating it is of no use."""
    # Full jitter: clients that failed together do not come back together.
    pause = random.random() * min(PAUSE_MAX_SECONDS, PAUSE_SECONDS * 2**attempt)
    if isinstance(error, ConnectionFailedError):
        return pause
    if not isinstance(error, ApiError) or error._retry_after > RETRY_AFTER_MAX_SECONDS:
        return None
    may_pass = error.status in (408, 429) or error.status >= 500 or error.has_code("idempotency_key_in_use")
    return error._retry_after + pause if may_pass else None


def trigger_headers(
    *,
    reports_ignored_keys: bool,
    delay_seconds: int | None,
    priority: int | None,
    expires_in_seconds: int | None,
) -> dict[str, str]:
    headers = {"Prefer": "report-ignored-keys"} if reports_ignored_keys else {}
    for name, value in (
        ("Latchkey-Delay", delay_seconds),
        ("Latchkey-Priority", priority),
        ("Latchkey-Expires-In", expires_in_seconds),
    ):
        if value is not None:
            headers[name] = str(value)
    return headers


def ignored_keys(response: httpx.Response) -> list[str]:
    value = response.headers.get("ignored-keys")
    if value is None:
        return []
    return ["" if key.strip() == '""' else unquote(key.strip()) for key in value.split(",")]


def is_terminal_session(state: Mapping[str, Any]) -> bool:
    """Other statuses are states in progress (`spec/interface.md`, "Credential session `status`")."""
    return state["status"] in _TERMINAL_SESSION


def is_terminal_run(state: Mapping[str, Any]) -> bool:
    """Other statuses are states in progress (`spec/interface.md`, "Blueprint run `status`")."""
    return state["status"] in _TERMINAL_RUN


def choose_key(keys: list[str], key: str | None) -> str:
    if key is None and len(keys) == 1:
        return keys[0]
    if key is not None and key in keys:
        return key
    problem = "The run has several results" if key is None else f"The run has no result {key}"
    raise LatchkeyError(f"{problem}: pass one of {', '.join(keys)}")
