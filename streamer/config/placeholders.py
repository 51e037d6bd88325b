"""Finds `${VAR}`, `${VAR:default}`, `${VAR|function}` and the escape `${{VAR}}` in a text.

What they may look like is what Benthos's regular expressions match; they are found by hand here,
since the expressions take quadratic time on texts that open braces and close none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OPENING: Final = re.compile(r"\$\{([0-9A-Za-z_.]+)(?:\}|\|([0-9A-Za-z]+)\}|(:))")
_ESCAPED: Final = re.compile(r"\$\{\{[0-9A-Za-z_.]+(:?)")
_MAX_NESTED_BRACES: Final = 100


class Variable(NamedTuple):
    """A variable in a text.

    Attributes:
        start: offset of its `$`.
        end: offset behind its brace.
        name: the variable's name.
        default: what stands behind the colon, or None.
        function: what stands behind the last `|`, or an empty string.
    """

    start: int
    end: int
    name: str
    default: str | None
    function: str


def find_variables(text: str) -> Iterator[Variable]:
    """Return the variables of a text, in order."""
    end = 0
    while match := _OPENING.search(text, end):
        if match[3] is None:
            end = match.end()
            yield Variable(match.start(), end, match[1], None, match[2] or "")
            continue
        closes = _find_closing_braces(text, match.end())
        if not closes:
            return  # No brace follows, so that nothing else is closed either.
        end = closes[-1] + 1
        default, bar, function = text[match.end() : closes[-1]].rpartition("|")
        if not bar:
            default, function = function, ""
        yield Variable(match.start(), end, match[1], default, function)


def find_escaped(text: str) -> Iterator[tuple[int, int]]:
    """Return where `${{X}}` and `${{X:default}}` start and end, in order."""
    end = 0
    while match := _ESCAPED.search(text, end):
        end = match.end()
        closes = _find_closing_braces(text, end) if match[1] else [end]
        if not closes:
            return
        for close in reversed(closes):
            if text.startswith("}}", close):
                end = close + 2
                yield match.start(), end
                break


def _find_closing_braces(text: str, at: int) -> list[int]:
    """Return the braces that may close a default, the last being the one that closes it best.

    A default may hold `${…}`, whose brace closes the default only when no other does.
    """
    closes: list[int] = []
    while (close := text.find("}", at)) >= 0:
        closes.append(close)
        nested = text.find("${", at, close)
        if nested < 0 or nested + 2 == close or len(closes) == _MAX_NESTED_BRACES:
            break
        at = close + 1
    return closes
