"""Latchkey's API, for backends. The names of fields are those of the API reference."""

from . import webhooks
from ._async_client import AsyncLatchkey
from ._client import Latchkey
from ._errors import (
    ApiError,
    AuthenticationError,
    AuthorizationError,
    ConflictError,
    ConnectionFailedError,
    LatchkeyError,
    NotFoundError,
    RateLimitError,
    ServerError,
    ValidationError,
    WaitTimeoutError,
    WebhookVerificationError,
)

__all__ = [
    "ApiError",
    "AsyncLatchkey",
    "AuthenticationError",
    "AuthorizationError",
    "ConflictError",
    "ConnectionFailedError",
    "Latchkey",
    "LatchkeyError",
    "NotFoundError",
    "RateLimitError",
    "ServerError",
    "ValidationError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "webhooks",
]
