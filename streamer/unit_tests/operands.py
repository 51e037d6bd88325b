"""Why a query is false: what the sides of its comparisons are for a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streamer.bloblang import BloblangError, compile_mapping, tree
from streamer.bloblang.parser import parse_mapping
from streamer.errors import MessageError
from streamer.message import Execution, Message
from streamer.unit_tests.failure import Line, as_json, labelled

_COMPARED: Final = ("==", "!=", "<", "<=", ">", ">=")
_OPERATOR: Final = re.compile(r"\s*(&&|\|\||[=!<>]=|[<>])\s*\Z")
_SAYS_ITSELF: Final = (tree.Literal, tree.Object)
_MOST: Final = 6


def sides(text: str, message: Message, directory: Path, ex: Execution) -> list[Line]:
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
        found = list(_Query(text, message, directory, ex).sides())
    except (BloblangError, MessageError, ValueError, TypeError):
        return []
    lines = dict.fromkeys(found)
    return [line for said in list(lines)[:_MOST] for line in labelled(*said, "received")]


class _Query:
    def __init__(self, text: str, message: Message, directory: Path, ex: Execution) -> None:
        self._text, self._message, self._ex = text, message, ex
        self._directory = str(directory)
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def sides(self) -> Iterator[tuple[str, str]]:
        """Return the sides' texts, as labels, and their values."""
        root = parse_mapping(self._text)
        if not isinstance(root, tree.Node):
            return
        operands = root.operands if isinstance(root, tree.Chain) else [root]
        only_and = isinstance(root, tree.Chain) and set(root.operators) == {"&&"}
        ends = [*(self._start(one) for one in operands[1:]), len(self._text)]
        for operand, end in zip(operands, ends, strict=True):
            if only_and and self._value(self._cut(self._start(operand), end)) is True:
                continue
            if isinstance(operand, tree.Binary) and operand.operator in _COMPARED:
                between = self._start(operand.right)
                yield from self._side(operand.left, self._start(operand.left), between)
                yield from self._side(operand.right, between, end)
            if only_and:
                return

    def _side(self, node: tree.Node, start: int, end: int) -> Iterator[tuple[str, str]]:
        if not isinstance(node, _SAYS_ITSELF):
            text = self._cut(start, end)
            yield f"  {' '.join(text.split())}: ", as_json(self._value(text))

    def _value(self, text: str) -> object:
        mapping = compile_mapping(text, directory=self._directory)
        if mapping.uses.random:
            raise ValueError("another time it is another value")
        return mapping.query([self._message], 0, self._ex)

    def _cut(self, start: int, end: int) -> str:
        return _OPERATOR.sub("", self._text[start:end])

    def _start(self, node: tree.Node) -> int:
        """Return where an expression begins: its own place may be that of its last part."""
        while True:
            match node:
                case tree.Binary(left=inner) | tree.Get(target=inner) | tree.Method(target=inner):
                    node = inner
                case tree.MapInto(target=inner):
                    node = inner
                case tree.Chain(operands=[inner, *_]):
                    node = inner
                case _:
                    return self._lines[node.place.line - 1] + node.place.column - 1
