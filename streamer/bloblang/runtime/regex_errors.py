"""Errors of regular expressions, in the words of Go's RE2."""

from __future__ import annotations

import re
from typing import Final

# What RE2 says, and what Go's port of it says.
_REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
# RE2 has an expression for one byte, which Go's port left out.
_ONE_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")


def find_unsupported(pattern: str) -> str:
    """Return what Go has against an expression that RE2 takes, or an empty text."""
    return "invalid escape sequence: `\\C`" if _ONE_BYTE.search(pattern) else ""


def to_go_reason(reason: str, pattern: str) -> str:
    """Return RE2's reason for refusing an expression in Go's words, the fault quoted."""
    text, _, part = reason.partition(": ")
    if text in ("missing )", "unexpected )"):
        part = pattern  # Go shows all of it
    elif part in ("(?<=", "(?<!"):
        text, part = "invalid named capture", pattern[pattern.index(part) :]
    return f"{_REASONS.get(text, text)}: `{part}`"
