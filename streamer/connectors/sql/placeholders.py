"""Placeholders of statements, between what configs write and what Python's drivers want."""

from __future__ import annotations

import re
from typing import Final

from streamer.connectors.sql.errors import SqlError

# What holds placeholders that are none: texts, names and comments.
_QUOTED: Final = (
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|/\*.*?\*/)|(\?|\$(\d+)\b)"""
)
_MARKS: Final = re.compile(_QUOTED, re.DOTALL)


def replace_placeholders(statement: str, mark: str) -> str:
    """Return a statement with other placeholders, and per cent signs twice.

    Args:
        statement: with question marks, or with `$1`, `$2` and so on in this order.
        mark: the placeholder instead.

    Raises:
        SqlError: numbers are in another order.

    >>> replace_placeholders("SELECT '?' LIKE '%', $1, $2", "%s")
    "SELECT '?' LIKE '%%', %s, %s"
    """
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match[1]:
            return match[1]
        count += 1
        if match[3] and int(match[3]) != count:
            raise SqlError(
                f"{match[2]} is the placeholder number {count} of the statement; they must be in "
                "ascending order, each once: give the value once more and use the next number"
            )
        return mark

    return _MARKS.sub(replace, statement.replace("%", "%%"))
