"""Tokens of OAUTHBEARER: until when they are good, and how Java's client comes by one.

librdkafka is handed the token itself. Java's client has no property for it, but its login handler
reads a token from a file that its endpoint's URL names, once the JVM allows that URL (KIP-1139:
`org.apache.kafka.sasl.oauthbearer.allowed.urls`). The file is this process's: only readable by the
user, and gone with the process. So it is of use where Spark runs on this machine only.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import json
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final

JAVA_LOGIN: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The system property of a JVM that names the URLs its clients may get tokens from."""

# A token that does not say when it ends is good until the broker says otherwise: 2100.
_NO_END_UNIX_S: Final = 4_102_444_800.0

_LOCK: Final = threading.Lock()
_TOKEN_DIRECTORIES: Final[dict[int, Path]] = {}


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


def java_token_problem(token: str) -> str | None:
    """Return why Java's client would not take a token, or None."""
    token_claims = parse_claims(token)
    if token_claims is None:
        return "is no JWT (three parts in base64, divided by dots)"
    missing = [name for name in ("sub", "exp") if name not in token_claims]
    return f"has no claim {' and no claim '.join(missing)}" if missing else None


def write_token(token: str) -> str:
    """Write a token where Java's client of this machine can read it, and return its URL."""
    with _LOCK:
        directory = _TOKEN_DIRECTORIES.get(os.getpid())
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix="streamer-token-"))
            _TOKEN_DIRECTORIES[os.getpid()] = directory
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
        file = directory / hashlib.sha256(token.encode()).hexdigest()[:16]
        if not file.exists():
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as out:
                out.write(token)
    return file.as_uri()
