"""Check sums within JSON objects, so that a digit that is another one is found."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

_CHECKSUM_KEY: Final = "checksum"


def add_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the check sum of all else that is in it."""
    rest = {name: value for name, value in document.items() if name != _CHECKSUM_KEY}
    return {**rest, _CHECKSUM_KEY: zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def has_valid_checksum(document: Mapping[str, Any]) -> bool:
    """Return whether an object is what was written; version 0.1 has written no check sums."""
    return _CHECKSUM_KEY not in document or add_checksum(document) == document
