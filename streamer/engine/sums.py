"""Check sums within JSON objects, so that a digit that is another one is found."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

_NAME: Final = "checksum"


def summed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the check sum of all else that is in it."""
    rest = {name: value for name, value in found.items() if name != _NAME}
    return {**rest, _NAME: zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def is_summed(found: Mapping[str, Any]) -> bool:
    """Tell whether an object is what was written; version 0.1 has written no check sums."""
    return _NAME not in found or summed(found) == found
