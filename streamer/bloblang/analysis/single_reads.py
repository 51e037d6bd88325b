"""Places where a mapping of a batch looks at one message of it: there the order counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.analysis.aggregates import parse_slice
from streamer.bloblang.analysis.aggregation_obstacles import literal_argument, split_from_all
from streamer.bloblang.analysis.snippets import extract_snippet
from streamer.bloblang.arguments import DynamicArgument, StaticArgument
from streamer.bloblang.mapping import Mapping
from streamer.bloblang.runtime.paths import split_path

_ENDS = (0, -1)


class SingleRead(NamedTuple):
    """A place where one message is looked at.

    Attributes:
        place: line and column in the mapping.
        text: the expression.
    """

    place: tree.Place
    text: str


def find_end_reads(mapping: Mapping) -> list[SingleRead]:
    """Return the places that pick the first or the last ones of a batch's messages.

    These are `from(0)` and `from(-1)`, and `index(0)`, `index(-1)`, `slice(0, n)` and `slice(-n)`
    of `from_all()`, also by way of a variable. What has been sorted before is picked by its own
    order.
    """
    values = {
        statement.name
        for statement in tree.walk(mapping.program.statements)
        if isinstance(statement, tree.Let) and split_from_all(statement.value) is not None
    }
    return [
        SingleRead(node.end or node.place, extract_snippet(node, mapping.text))
        for node in tree.walk(mapping.program.statements)
        if isinstance(node, tree.Method) and _picks_end(node, values)
    ]


def _picks_end(node: tree.Method, values: set[str]) -> bool:
    if node.name == "slice":
        if parse_slice(node)[0] is None:
            return False
    elif node.name not in ("from", "index") or literal_argument(node, 0) not in _ENDS:
        return False
    if node.name == "from":
        return True
    of_variable = isinstance(node.target, tree.Variable) and node.target.name in values
    return of_variable or split_from_all(node.target) is not None


def find_own_reads(mapping: Mapping) -> list[tuple[str, ...]]:
    """Return the paths of the document that a mapping reads of the message that it is given.

    What it reads of all messages (`from_all()`, `from(n)`), or of the elements of an array, is left
    out, and so are the metadata.
    """
    return list(dict.fromkeys(_read_paths(mapping.program.statements)))


def _read_paths(parts: Iterable[tree.Node | tree.Statement]) -> Iterator[tuple[str, ...]]:
    for part in parts:
        match part:
            case tree.Path(base="this", path=path):
                yield path
            case tree.Call(name="json"):
                argument = part.bound.arguments[0]
                if isinstance(argument, StaticArgument):
                    yield tuple(split_path(argument.value)) if argument.value else ()
            case tree.Call(name="content"):
                yield ()
            case tree.Method(name="from" | "from_all"):
                pass
            case tree.Method(target=target):
                arguments = part.bound.arguments
                nodes = [one.node for one in arguments if isinstance(one, DynamicArgument)]
                yield from _read_paths([target, *nodes])
            case tree.MapInto(target=target):
                yield from _read_paths([target])
            case _:
                yield from _read_paths(tree.list_children(part))
