"""Verifies webhooks by Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import cast

from ._errors import WebhookVerificationError
from ._types import WebhookEvent

_PREFIX = "whsec_"


def verify(
    body: bytes | str, headers: Mapping[str, str], secret: str, *, tolerance: float = 300
) -> WebhookEvent:
    """Verifies a webhook and returns its event. `body`: the request's body as it came, before it is parsed. `secret`:
    of the endpoint, `whsec_…`. `tolerance`: how far the timestamp may be from the time of this machine, in seconds.
    The same event may come more than once, with the same `webhook-id`. Raises WebhookVerificationError.
    """
    names = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp, signatures = (
        _read_header(names, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    is_number = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12
    if not is_number or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookVerificationError("The webhook's timestamp is too far from the current time")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{event_id}.{timestamp}.".encode() + content
    wanted = base64.b64encode(hmac.new(_read_key(secret), signed, hashlib.sha256).digest())
    for signature in signatures.split(" "):
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(wanted, value.encode()):
            return cast(WebhookEvent, json.loads(content))
    raise WebhookVerificationError("The webhook has no signature by this secret")


def _read_header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise WebhookVerificationError(f"The webhook has no header {name}")
    return value


def _read_key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(_PREFIX) or not key:
        raise WebhookVerificationError("The secret must be that of the endpoint: whsec_…")
    return key
