"""Marks the word of a mapping that an error is about."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streamer.bloblang.errors import BloblangError

_NAMED_CALL: Final = re.compile(r"^(?:unrecognised )?(?:function|method) '([^']+)'")
_WORD: Final = re.compile(r"[\w$@]+|[^\s\w]")


class Culprit(NamedTuple):
    """The word of a mapping that an error is about.

    Attributes:
        line: 1-based.
        column: 1-based, within the line.
        length: characters.
        is_named: whether the error names it; it is only where reading stopped otherwise.
    """

    line: int
    column: int
    length: int
    is_named: bool


def find_culprit(error: BloblangError, text: str) -> Culprit:
    """Return the word that an error is about.

    The place that an error names is where reading stopped, which may be behind the culprit: a name
    that does not exist is reported at the end of its call.
    """
    lines = text.split("\n")
    number = min(error.line, len(lines))
    at = error.column - 1
    while number > 1 and not lines[number - 1].strip():
        number, at = number - 1, len(lines[number - 2])
    line = lines[number - 1]
    at = min(at, len(line))
    named = _NAMED_CALL.search(error.message)
    start = line.rfind(named[1], 0, at + len(named[1])) if named else -1
    if named and start >= 0:
        return Culprit(number, start + 1, len(named[1]), True)
    # The word at the place; at the end of the line, the last one.
    words = [word.span() for word in _WORD.finditer(line)]
    start, end = next((span for span in words if span[1] > at), (words or [(at, at + 1)])[-1])
    start = max(start, at) if end > at else start
    return Culprit(number, start + 1, max(end - start, 1), False)


def format_caret(error: BloblangError, text: str) -> str:
    """Show where a mapping could not be read: the line, and carets under the word.

    Where no word is named, the mark is that of Benthos, at the place where reading stopped.
    """
    lines = text.split("\n")
    culprit = find_culprit(error, text)
    row, before, mark = culprit.line, culprit.column - 1, "^" * culprit.length
    if not culprit.is_named:
        row, before, mark = error.line, error.column - 1, "^---"
    line = lines[row - 1] if row <= len(lines) else ""
    margin = " " * len(str(row))
    indent = "".join(one if one == "\t" else " " for one in line[:before]).ljust(before)
    return f"{error}\n{margin} |\n{row} | {line}\n{margin} | {indent}{mark}"
