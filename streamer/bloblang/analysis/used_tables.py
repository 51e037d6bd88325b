"""The lookup tables that a mapping looks up, by the labels that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.arguments import StaticArgument
from streamer.bloblang.interpolation import Interpolation
from streamer.bloblang.mapping import Mapping


class TableUse(NamedTuple):
    """A call that looks up a table.

    Attributes:
        line: 1-based line within the text; 1 when the call may stand in another file.
        column: 1-based column within the line.
        label: the table's.
    """

    line: int
    column: int
    label: str


def find_used_tables(mapping: Mapping | Interpolation) -> Iterator[TableUse]:
    """Give the calls of `table` in a mapping or an interpolated string, and in what it imports."""
    text = mapping.text
    imports = text.lstrip().startswith("from ") or "import" in text
    if not imports and "table" not in text:
        return  # Nearly always.
    root = mapping.queries if isinstance(mapping, Interpolation) else mapping.program
    for call in tree.walk(root):
        if isinstance(call, tree.Call) and call.name == "table":
            argument = call.bound.arguments[0]
            if isinstance(argument, StaticArgument):
                line, column = (1, 1) if imports else (call.place.line, call.place.column)
                yield TableUse(line, column, str(argument.value))
