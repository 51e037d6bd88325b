"""Explains why a query is false: the values of its comparisons' sides for a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streamer.bloblang import BloblangError, compile_mapping, tree
from streamer.bloblang.parser import parse_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.tools.unit_tests.failure import Line, label_lines, to_json_text

_COMPARISON_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=")
_OPERATOR: Final = re.compile(r"\s*(&&|\|\||[=!<>]=|[<>])\s*\Z")
_LITERAL_NODES: Final = (tree.Literal, tree.Object)
_MAX_SIDES: Final = 6


def explain_false_query(text: str, message: Message, directory: Path, ex: Execution) -> list[Line]:
    """Return the values of what a false query compares, a line each.

    Of comparisons joined by `&&` it is the first that is false. Nothing is returned for queries
    of other forms, and for what cannot be asked again.

    Args:
        text: the query.
        message: the message that it is false for.
        directory: where the files are that it imports.
        ex: what mappings may ask for.
    """
    try:
        pairs = list(_Query(text, message, directory, ex).find_sides())
    except (BloblangError, MessageError, ValueError, TypeError):
        return []
    lines = dict.fromkeys(pairs)
    return [line for entry in list(lines)[:_MAX_SIDES] for line in label_lines(*entry, "received")]


class _Query:
    def __init__(self, text: str, message: Message, directory: Path, ex: Execution) -> None:
        self._text, self._message, self._ex = text, message, ex
        self._directory = str(directory)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def find_sides(self) -> Iterator[tuple[str, str]]:
        """Return the sides' texts, as labels, and their values."""
        root = parse_mapping(self._text)
        if not isinstance(root, tree.Node):
            return
        operands = root.operands if isinstance(root, tree.Chain) else [root]
        only_and = isinstance(root, tree.Chain) and set(root.operators) == {"&&"}
        ends = [*(self._find_start(one) for one in operands[1:]), len(self._text)]
        for operand, end in zip(operands, ends, strict=True):
            if (
                only_and
                and self._evaluate_text(self._cut_text(self._find_start(operand), end)) is True
            ):
                continue
            if isinstance(operand, tree.Binary) and operand.operator in _COMPARISON_OPERATORS:
                between = self._find_start(operand.right)
                yield from self._evaluate_side(
                    operand.left, self._find_start(operand.left), between
                )
                yield from self._evaluate_side(operand.right, between, end)
            if only_and:
                return

    def _evaluate_side(self, node: tree.Node, start: int, end: int) -> Iterator[tuple[str, str]]:
        if not isinstance(node, _LITERAL_NODES):
            text = self._cut_text(start, end)
            yield f"  {' '.join(text.split())}: ", to_json_text(self._evaluate_text(text))

    def _evaluate_text(self, text: str) -> object:
        mapping = compile_mapping(text, directory=self._directory)
        if mapping.uses.random:
            raise ValueError("another time it is another value")
        return mapping.query([self._message], 0, self._ex)

    def _cut_text(self, start: int, end: int) -> str:
        return _OPERATOR.sub("", self._text[start:end])

    def _find_start(self, node: tree.Node) -> int:
        """Return where an expression begins: its own place may be that of its last part."""
        place = tree.find_leftmost(node).place
        return self._lines[place.line - 1] + place.column - 1
