"""Reading a mapping with lark's LALR tables; refusal/ puts errors in Benthos's words.

The tables are read once per process, when the first mapping is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from streamer.bloblang import refusal, tables, tree
from streamer.bloblang.builder import Builder
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.nesting import MOST_BRACKETS, too_deep_at
from streamer.bloblang.refusal import Miss

_BEGUN: Final = re.compile(r"(?:[ \t]|(?:#[^\n]*)?\r?\n)*(?:import|let|map)[ \t]")


@lru_cache(maxsize=1)
def _lark() -> Lark:
    return tables.load(Builder())


class Unreadable(BloblangError):
    """A text that is no mapping.

    Attributes:
        read: how many characters of it are whole statements.
    """

    def __init__(self, line: int, column: int, message: str, *, read: int) -> None:
        super().__init__(line, column, message)
        self.read = read


def _parse(text: str, start: str) -> Any:
    return _lark().parse(text, start=start)


def _refused(miss: Miss | None, error: UnexpectedInput | BloblangError, text: str) -> BloblangError:
    """Say why a text was refused, in Benthos's words when it refuses it as well."""
    if miss is not None:
        return Unreadable(*_place(text, miss.at), miss.message, read=miss.read)
    if isinstance(error, BloblangError):
        return error
    last = _place(text, len(text))
    line, column = error.line, error.column
    place = (line, column) if line and line > 0 else last
    return BloblangError(*min(place, last), "encountered unexpected input")


def _why(tell: Callable[[str], Miss | None], text: str) -> Miss | None:
    """Ask why a text was refused; nobody knows when little is left of Python's stack."""
    try:
        return tell(text)
    except RecursionError:
        return None


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _whole(text: str) -> str:
    at = too_deep_at(text)
    if at is not None:
        reason = f"brackets are nested more than {MOST_BRACKETS} levels deep"
        raise BloblangError(*_place(text, at), reason)
    return text if text.endswith("\n") else text + "\n"


def parse_statements(text: str) -> list[tree.Statement]:
    """Read a mapping that must consist of statements, as a file that is imported.

    Raises:
        BloblangError: it cannot be read.
    """
    whole = _whole(text)
    try:
        statements: list[tree.Statement] = _parse(whole, "mapping")
    except (UnexpectedInput, BloblangError) as e:
        raise _refused(_why(refusal.statements_error, text), e, text) from None
    return statements


def parse_mapping(text: str) -> list[tree.Statement] | tree.Node:
    """Read a mapping: statements, or one expression that stands for `root = …`.

    Raises:
        BloblangError: neither can be read; says what was expected where reading got further.
    """
    whole = _whole(text)
    try:
        statements: list[tree.Statement] = _parse(whole, "mapping")
        return statements
    except (UnexpectedInput, BloblangError) as e:
        error = e
    try:
        node: tree.Node = _parse(whole, "expression")
        # After `let` and the like a name is required: no expression may begin so.
        begun = _BEGUN.match(text)
        miss = refusal.statements_error(text) if begun else None
        if miss is None or not miss.reason:
            return node
    except (UnexpectedInput, BloblangError):
        pass
    raise _refused(_why(refusal.mapping_error, text), error, text) from None


def parse_field(text: str) -> list[str | tree.Node]:
    """Read an interpolated string: literal text and expressions, in order.

    Raises:
        BloblangError: an expression cannot be read.
    """
    parts: list[str | tree.Node] = []
    try:
        parsed = _parse(text, "field")
    except (UnexpectedInput, BloblangError) as e:
        raise _refused(_why(refusal.field_error, text), e, text) from None
    for part in parsed:
        if isinstance(part, Token):
            literal = str(part)
            parts.append(literal if part.type == "TEXT" else "${!" + literal[4:-2] + "}")
        else:
            parts.append(part)
    return parts
