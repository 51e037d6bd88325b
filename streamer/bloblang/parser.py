"""Reading a mapping with lark's LALR tables; error_parser/ puts errors in Benthos's words.

The tables are read once per process, when the first mapping is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from streamer.bloblang import error_parser, parser_tables, tree
from streamer.bloblang.error_parser import ParseFailure
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.hints import suggest_syntax
from streamer.bloblang.nesting import MAX_BRACKET_DEPTH, find_too_deep_bracket
from streamer.bloblang.tree_builder import TreeBuilder

_STATEMENT_KEYWORD: Final = re.compile(r"(?:[ \t]|(?:#[^\n]*)?\r?\n)*(?:import|let|map)[ \t]")


@lru_cache(maxsize=1)
def _load_parser() -> Lark:
    return parser_tables.load_parser(TreeBuilder())


class MappingSyntaxError(BloblangError):
    """A text that is no mapping.

    Attributes:
        valid_chars: how many characters of it are whole statements.
    """

    def __init__(
        self, line: int, column: int, message: str, suggestion: str = "", *, valid_chars: int
    ) -> None:
        super().__init__(line, column, message, suggestion)
        self.valid_chars = valid_chars


def _parse(text: str, start: str) -> Any:
    return _load_parser().parse(text, start=start)


def _make_syntax_error(
    miss: ParseFailure | None, error: UnexpectedInput | BloblangError, text: str
) -> BloblangError:
    """Return why a text was refused, in Benthos's words when it refuses it as well."""
    if miss is not None:
        return MappingSyntaxError(
            *_line_and_column(text, miss.at),
            miss.message,
            suggest_syntax(text, miss.at, miss.message),
            valid_chars=miss.valid_chars,
        )
    if isinstance(error, BloblangError):
        return error
    last = _line_and_column(text, len(text))
    line, column = error.line, error.column
    place = (line, column) if line and line > 0 else last
    return BloblangError(*min(place, last), "encountered unexpected input")


def _explain_rejection(
    explain: Callable[[str], ParseFailure | None], text: str
) -> ParseFailure | None:
    """Find why a text was refused; None when little is left of Python's stack."""
    try:
        return explain(text)
    except RecursionError:
        return None


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _prepare_text(text: str) -> str:
    at = find_too_deep_bracket(text)
    if at is not None:
        reason = f"brackets are nested more than {MAX_BRACKET_DEPTH} levels deep"
        raise BloblangError(*_line_and_column(text, at), reason)
    return text if text.endswith("\n") else text + "\n"


def parse_statements(text: str) -> list[tree.Statement]:
    """Read a mapping that must consist of statements, as a file that is imported.

    Raises:
        BloblangError: it cannot be read.
    """
    whole = _prepare_text(text)
    try:
        statements: list[tree.Statement] = _parse(whole, "mapping")
    except (UnexpectedInput, BloblangError) as e:
        raise _make_syntax_error(
            _explain_rejection(error_parser.find_statements_error, text), e, text
        ) from None
    return statements


def parse_mapping(text: str) -> list[tree.Statement] | tree.Node:
    """Read a mapping: statements, or one expression that stands for `root = …`.

    Raises:
        BloblangError: neither can be read; says what was expected where reading got further.
    """
    whole = _prepare_text(text)
    try:
        statements: list[tree.Statement] = _parse(whole, "mapping")
        return statements
    except (UnexpectedInput, BloblangError) as e:
        error = e
    try:
        node: tree.Node = _parse(whole, "expression")
        # After `let` and the like a name is required: no expression may begin so.
        keyword = _STATEMENT_KEYWORD.match(text)
        miss = error_parser.find_statements_error(text) if keyword else None
        if miss is None or not miss.reason:
            return node
    except (UnexpectedInput, BloblangError):
        pass
    raise _make_syntax_error(
        _explain_rejection(error_parser.find_mapping_error, text), error, text
    ) from None


def parse_field(text: str) -> list[str | tree.Node]:
    """Read an interpolated string: literal text and expressions, in order.

    Raises:
        BloblangError: an expression cannot be read.
    """
    parts: list[str | tree.Node] = []
    try:
        parsed = _parse(text, "field")
    except (UnexpectedInput, BloblangError) as e:
        raise _make_syntax_error(
            _explain_rejection(error_parser.find_field_error, text), e, text
        ) from None
    for part in parsed:
        if isinstance(part, Token):
            literal = str(part)
            parts.append(literal if part.type == "TEXT" else "${!" + literal[4:-2] + "}")
        else:
            parts.append(part)
    return parts
