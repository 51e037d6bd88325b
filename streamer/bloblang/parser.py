"""Reading a mapping: lark's LALR tables, and its errors in Benthos's words.

The tables are built from grammar.lark once per process, when the first mapping is read, or loaded
from grammar.tables when that fits (`python -m streamer.bloblang.parser` writes it).
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from streamer.bloblang import tree
from streamer.bloblang.builder import Builder
from streamer.bloblang.errors import BloblangError

_STARTS: Final = ["mapping", "expression", "field"]


@lru_cache(maxsize=1)
def _lark() -> Lark:
    grammar = resources.files("streamer.bloblang").joinpath("grammar.lark").read_text()
    return Lark(
        grammar,
        parser="lalr",
        start=_STARTS,
        maybe_placeholders=False,
        transformer=Builder(),
    )


def _parse(text: str, start: str) -> Any:
    try:
        return _lark().parse(text, start=start)
    except UnexpectedInput as e:
        raise _error(e, text) from None


# Terminals that begin something, by what Benthos calls it.
_BEGIN_QUERY: Final = "NUMBER"
_NAMES: Final = {
    "_RPAR": ")",
    "_RSQB": "]",
    "_RBRACE": "}",
    "_LBRACE": "{",
    "_COMMA": ",",
    "_COLON": ":",
    "_ARROW": "=>",
    "_EQ": "=",
    "_NL": "line break",
}


def _error(error: UnexpectedInput, text: str) -> BloblangError:
    line, column = error.line, error.column
    if isinstance(error, UnexpectedEOF) or line is None or line < 1:
        line, column = _end(text)
    if isinstance(error, UnexpectedToken):
        accepted = set(error.accepts or error.expected)
        if error.token.type == "$END":
            line, column = _end(text)
        elif error.token.type == "_NL":
            line, column = _place(text, error.token.start_pos or 0)
    elif isinstance(error, UnexpectedCharacters):
        accepted = set(error.allowed or ())
    else:
        accepted = set()
    at = _offset(text, line, column)
    return BloblangError(line, column, _expected(accepted, text, at))


def _expected(accepted: set[str], text: str, at: int) -> str:
    if text.startswith('"', at) and "STRING" in accepted:
        return "required: expected end quote"
    if "_EQ" in accepted and re.match(r"\S?=|=\S", text[max(at - 1, 0) :]):
        return "expected whitespace"
    if _BEGIN_QUERY in accepted:
        return "expected query"
    if "_NL" in accepted and "_RBRACE" not in accepted:
        return "expected line break"
    if "NAME" in accepted and "_LPAR" in accepted:
        return "required: expected method or field path"
    if "LET" in accepted:
        return "expected import, map, or assignment"
    if "NAME" in accepted and "_EQ" not in accepted:
        return "expected name"
    names = [name for terminal, name in _NAMES.items() if terminal in accepted]
    if "_LBRACE" in accepted and "_RBRACE" not in accepted:
        names = ["{"]
    if not names:
        return "encountered unexpected input"
    return "expected " + (
        names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    )


def _end(text: str) -> tuple[int, int]:
    return _place(text, len(text.rstrip("\n")) if text.strip() else len(text))


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(part) + 1 for part in lines[: line - 1]) + column - 1


def parse_mapping(text: str) -> list[tree.Statement] | tree.Node:
    """Read a mapping: statements, or one expression that stands for `root = …`.

    Raises:
        BloblangError: neither can be read; says what was expected where reading got further.
    """
    whole = text if text.endswith("\n") else text + "\n"
    try:
        statements: list[tree.Statement] = _parse(whole, "mapping")
        return statements
    except BloblangError as e:
        as_statements = e
    try:
        node: tree.Node = _parse(whole, "expression")
        return node
    except BloblangError as e:
        further = (e.line, e.column) > (as_statements.line, as_statements.column)
        raise e if further else as_statements from None


def parse_field(text: str) -> list[str | tree.Node]:
    """Read an interpolated string: literal text and expressions, in order.

    Raises:
        BloblangError: an expression cannot be read.
    """
    parts: list[str | tree.Node] = []
    for part in _parse(text, "field"):
        if isinstance(part, Token):
            literal = str(part)
            parts.append(literal if part.type == "TEXT" else "${!" + literal[4:-2] + "}")
        else:
            parts.append(part)
    return parts
