"""Tokens of OAUTHBEARER: until when they are good."""

from __future__ import annotations

import base64
import json
from typing import Final

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
    ends = (parse_claims(token) or {}).get("exp")
    return float(ends) if isinstance(ends, int | float) else _NO_END_UNIX_S
