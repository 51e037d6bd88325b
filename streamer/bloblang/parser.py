"""Reading a mapping: lark's LALR tables, and its errors in Benthos's words.

The tables are built from grammar.lark once per process, when the first mapping is read (60 ms).
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

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


_UNEXPECTED: Final = "encountered unexpected input"
# What a parser that stood here could have gone on with, the first that fits, in Benthos's words.
_RULES: Final[tuple[tuple[frozenset[str], str], ...]] = tuple(
    (frozenset(terminals.split()), words)
    for terminals, words in (
        ("ARGUMENT", "required: expected function argument"),
        ("_ANY", "required: expected match case"),
        ("NUMBER", "expected query"),
        ("IMPORT LET _RBRACE", "expected assignment or }"),
        ("IMPORT LET", "expected import, map, or assignment"),
        ("_NL _RBRACE _COMMA", "required: expected ,, line break, or }"),
        ("_NL _RBRACE OPERATOR", "expected line break or }"),
        ("_NL", "expected line break"),
        ("_RPAR _COMMA", "required: expected comma or closing bracket"),
        ("_RSQB _COMMA", "expected , or ]"),
        ("_RBRACE _COMMA", "expected , or }"),
        ("_RPAR", "required: expected closing bracket"),
        ("_ARROW", "required: expected =>"),
        ("_RBRACE", "required: expected }"),
        ("_LBRACE", "required: expected {"),
        ("_COLON", "expected :"),
        ("_EQ", "expected ="),
    )
)


def _error(error: UnexpectedInput, text: str) -> BloblangError:
    line, column = error.line, error.column
    accepted: set[str] = set()
    if isinstance(error, UnexpectedToken):
        accepted = set(error.accepts or error.expected)
        if error.token.type == "_NL":
            line, column = _place(text, error.token.start_pos or 0)
    elif isinstance(error, UnexpectedCharacters):
        accepted = set(error.allowed or ())
    at = _offset(text, line, column) if line and line > 0 else len(text)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        at = len(text)
    at = min(at, len(text.rstrip("\n"))) if text.strip() else len(text.rstrip("\n"))
    if text.startswith('"', at) and "STRING" in accepted:
        quotes = "triple-quote" if text.startswith('"""', at) else "quote"
        message, at = f"required: expected end {quotes}", len(text.rstrip("\n"))
    else:
        message = _expected(accepted, text, at)
    return BloblangError(*_place(text, at), message)


def _expected(accepted: set[str], text: str, at: int) -> str:
    before = text[:at].rstrip(" \t")
    if "_EQ" in accepted and text[at : at + 1] not in (" ", "\t"):
        if len(before) == at:
            return "expected whitespace"
        if text.startswith("=", at):
            return "expected whitespace"
    if "NAME" in accepted and "NUMBER" not in accepted and "LET" not in accepted:
        if before.endswith("."):
            return "required: expected method or field path"
        word = re.split(r"\s", before)[-1]
        names = {"let": "variable name", "map": "map name", "meta": "metadata key or ="}
        return f"required: expected {names.get(word, 'name')}"
    if accepted == {"STRING"}:
        return "required: expected filepath"
    for terminals, words in _RULES:
        if terminals <= accepted:
            return words
    return _UNEXPECTED


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(part) + 1 for part in lines[: line - 1]) + column - 1


def parse_statements(text: str) -> list[tree.Statement]:
    """Read a mapping that must consist of statements, as a file that is imported.

    Raises:
        BloblangError: it cannot be read.
    """
    statements: list[tree.Statement] = _parse(
        text if text.endswith("\n") else text + "\n", "mapping"
    )
    return statements


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
        if (e.line, e.column) <= (as_statements.line, as_statements.column):
            raise as_statements from None
        raise _shorthand(e, text) if e.message == _UNEXPECTED else e from None


def _shorthand(error: BloblangError, text: str) -> BloblangError:
    """Say that a mapping which is one expression goes on where it should have ended."""
    begin = text[: _offset(text, error.line, error.column)].strip()
    begin = begin[:12] + "..." if len(begin) > 12 else begin
    return BloblangError(
        error.line,
        error.column,
        f"expected the mapping to end here as the beginning is shorthand for `root = {begin}`, "
        "but this shorthand form cannot be followed with more assignments",
    )


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
