"""Sizes in bytes as text, as Redpanda Connect reads them: `1MiB`, `50 MB`, `1,000`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_TEXT: Final = re.compile(r"\s*([0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_LETTERS: Final = "kmgtpe"


def parse_size(text: str) -> int:
    """Return the bytes that a text says: `kB` are 1000 of them, `KiB` and `Ki` 1024.

    Raises:
        ValueError: it says none.
    """
    match = _TEXT.fullmatch(text)
    unit = match[2].lower() if match else ""
    power = 0 if unit in ("", "b") else _LETTERS.find(unit[:1]) + 1
    rest = unit[1:] if power else ""
    if not match or (unit not in ("", "b") and not power) or rest not in ("", "b", "i", "ib"):
        raise ValueError(f"is {text!r}; expected a size such as 1MiB, 50MB or 1000")
    return int(float(match[1].replace(",", "")) * (1024 if "i" in rest else 1000) ** power)


def size_check(minimum: int, maximum: int) -> Callable[[str], str | None]:
    """Return what checks a field that is a size in these bounds, bytes."""

    def check(text: str) -> str | None:
        try:
            size = parse_size(text)
        except ValueError as error:
            return str(error)
        if minimum <= size <= maximum:
            return None
        return f"is {text}; expected {minimum} to {maximum} bytes"

    return check
