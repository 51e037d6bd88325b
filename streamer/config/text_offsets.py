"""Maps characters of a scalar's text to the file: quotes, line breaks and indents undone."""

from __future__ import annotations

import re
from typing import Final

from streamer.config.nodes import Scalar

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_FOLD: Final = re.compile(r"[ \t]*(?:\r\n|\r|\n)[ \t]*")
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
_ESCAPED_LINE_END: Final = re.compile(r"\\(?:\r\n|\r|\n)[ \t]*")
_HEADER: Final = re.compile(r"[|>][^\r\n]*(?:\r\n|\r|\n)")


def find_offset(node: Scalar, line: int, column: int) -> int:
    """Return the offset in the source of a 1-based line and column of a scalar's text.

    When the way back cannot be followed, the offset of the scalar itself is returned: a message
    is then less exact, no more.
    """
    lines = node.text.split("\n")
    if not 1 <= line <= len(lines):
        return node.start
    index = sum(len(text) + 1 for text in lines[: line - 1])
    index += max(0, min(column - 1, len(lines[line - 1])))
    raw = node.source.text[node.start : node.end]
    follow = _follow_block if node.style in ("|", ">") else _follow_flow
    at = follow(raw, node.text, node.style, index)
    return node.start if at is None else node.start + at


def _follow_block(raw: str, text: str, style: str, index: int) -> int | None:
    """Walk a block scalar and its text side by side, up to `text[index]` or its end."""
    header = _HEADER.match(raw)
    if header is None:
        return None
    at = _skip_indent(raw, header.end(), text, 0)
    position = 0
    while True:
        char = text[position] if position < len(text) else ""
        line_end = _LINE_END.match(raw, at)
        if line_end and style == ">" and char not in ("", "\n", " "):
            # The line end after an empty line is the one that folding takes away.
            at = _skip_indent(raw, line_end.end(), text, position)
            continue
        if position == index or not char:
            return at
        position += 1
        if line_end and (char == "\n" or style == ">"):
            at = _skip_indent(raw, line_end.end(), text, position)
        elif raw.startswith(char, at):
            at += 1
        else:
            return None


def _skip_indent(raw: str, at: int, text: str, position: int) -> int:
    """Step over the spaces of a line that are indentation: those that the text has no more of."""
    return at + max(0, _count_spaces(raw, at) - _count_spaces(text, position))


def _count_spaces(text: str, at: int) -> int:
    end = at
    while end < len(text) and text[end] == " ":
        end += 1
    return end - at


def _follow_flow(raw: str, text: str, style: str, index: int) -> int | None:
    """Walk a plain or quoted scalar and its text side by side, up to `text[index]` or its end."""
    at = len(style)
    position = 0
    while True:
        char = text[position] if position < len(text) else ""
        if style == '"' and (skipped := _ESCAPED_LINE_END.match(raw, at)):
            at = skipped.end()
            continue
        fold = _FOLD.match(raw, at)
        if fold and char not in ("", " ", "\n"):
            at = fold.end()
            continue
        if position == index or not char:
            return at
        position += 1
        if fold:
            at = fold.end()
        elif style == '"' and (escape := _ESCAPE.match(raw, at)):
            at = escape.end()
        elif style == "'" and raw.startswith("''", at):
            at += 2
        elif raw.startswith(char, at):
            at += 1
        else:
            return None
