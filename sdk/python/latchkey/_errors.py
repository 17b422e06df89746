from __future__ import annotations

import json
from typing import Any

from ._types import ErrorDetail


class LatchkeyError(Exception):
    """The base of every error that this package raises."""


class ConnectionFailedError(LatchkeyError):
    """There was no response: the connection failed, or the request timed out. `__cause__` has the reason."""


class WebhookVerificationError(LatchkeyError):
    """A webhook is not genuine, or too old: answer it with status 400."""


class WaitTimeoutError(LatchkeyError):
    """The session or run has not reached a terminal status in the given time. It is unaffected: wait again."""

    def __init__(self, message: str, last: Any = None) -> None:
        super().__init__(message)
        #: Its last known state; None if none was received.
        self.last = last


class ApiError(LatchkeyError):
    """A response with an error status. Branch on `type` and `has_code`, never on the message."""

    def __init__(self, status: int, request_id: str | None, text: str) -> None:
        error = _read_error(text)
        message = f"The response has the status {status} and is not from Latchkey: check base_url"
        super().__init__(error.get("message", message))
        #: The HTTP status.
        self.status = status
        #: `error.type` of the response, such as `validation_error`; `unknown` if the response is not Latchkey's.
        self.type: str = error.get("type", "unknown")
        #: The problems, one by one.
        self.details: list[ErrorDetail] = error.get("details", [])
        #: `X-Request-Id` of the response. Quote it when you report a failure.
        self.request_id = request_id
        self._retry_after: float = 0

    def has_code(self, code: str) -> bool:
        """Whether a detail of the error has this code, such as `idempotency_key_reuse`."""
        return any(detail.get("code") == code for detail in self.details)


class AuthenticationError(ApiError):
    """401: the API key is missing, malformed or invalid."""


class AuthorizationError(ApiError):
    """403: the API key has no access to the resource."""


class NotFoundError(ApiError):
    """404: the resource does not exist, or belongs to another account."""


class ConflictError(ApiError):
    """409: the state does not allow it, such as results of a run that has not completed."""


class ValidationError(ApiError):
    """400, 413, 415 or 422: the request is invalid; `details` names the fields."""


class RateLimitError(ApiError):
    """429, after the retries."""


class ServerError(ApiError):
    """500 and above, after the retries."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: AuthorizationError,
    404: NotFoundError,
    409: ConflictError,
    413: ValidationError,
    415: ValidationError,
    422: ValidationError,
    429: RateLimitError,
}


def error_of(status: int, request_id: str | None, retry_after: str, text: str) -> ApiError:
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    error = kind(status, request_id, text)
    if retry_after.isdigit():
        error._retry_after = float(retry_after)
    return error


def _read_error(text: str) -> dict[str, Any]:
    try:
        error = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}
