"""Tokens of OAUTHBEARER: until when they are good."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl

# A token that does not say when it ends is good until the broker says otherwise: 2100.
_NO_END_UNIX_S: Final = 4_102_444_800.0


def parse_claims(token: str) -> dict[str, object] | None:
    """Return what a JWT says, unchecked; None when the token is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        document = json.loads(base64.urlsafe_b64decode(padded))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def token_end(token: str) -> float:
    """Return when a token ends, Unix seconds; far away when it does not say."""
    claims = parse_claims(token)
    if claims is None:
        return _signed_url_end(token) or _NO_END_UNIX_S
    ends = claims.get("exp")
    return float(ends) if isinstance(ends, int | float) else _NO_END_UNIX_S


def _signed_url_end(token: str) -> float | None:
    """Return when a token of Amazon MSK ends; None when it is none."""
    try:
        url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        fields = dict(parse_qsl(url.partition("?")[2]))
        signed = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%S%z")
        return signed.timestamp() + int(fields["X-Amz-Expires"])
    except (ValueError, KeyError):
        return None
