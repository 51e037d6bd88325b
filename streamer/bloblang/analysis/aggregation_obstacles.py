"""Obstacles to pre-aggregating a mapping, in words that name the expression and what would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.arguments import StaticArgument

_STEP_METHODS: Final = ("map_each", "filter")
AGGREGATE_METHODS: Final = (
    "a method that aggregates, such as sum(), avg(), max(), length(), percentile(), unique(), "
    'count_by(), max_by() or index(0) (all are in "What a window keeps"), with map_each() and '
    "filter() before it"
)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a mapping cannot be pre-aggregated.

    Attributes:
        place: of the expression that stands in the way; None when it is the whole mapping.
        reason: what it does.
    """

    place: tree.Place | None
    reason: str

    def __str__(self) -> str:
        where = f"line {self.place.line}, column {self.place.column}: " if self.place else ""
        return where + self.reason


class NotAggregatableError(Exception):
    """A mapping cannot be pre-aggregated.

    Attributes:
        obstacle: why.
    """

    def __init__(self, place: tree.Place, reason: str) -> None:
        self.obstacle = Obstacle(place, reason)
        super().__init__(str(self.obstacle))


def explain_kept_messages(program: tree.Program) -> Obstacle:
    """Return why it is not certain that a mapping keeps the first message of a batch only."""
    keeping = "root = if batch_index() == 0 { … } else { deleted() }"
    assigned = [part for part in tree.walk(program.statements) if isinstance(part, tree.Assign)]
    if not assigned:
        reason = "it assigns nothing to root, so it keeps all messages"
        return Obstacle(None, f"{reason}; {keeping} keeps the first only")
    last = assigned[-1]
    if len(assigned) > 1 or last.path:
        target = ".".join(("root", *last.path))
        reason = f"it assigns {target}, so it may keep more messages than the first"
        return Obstacle(last.place, f"{reason}; one statement {keeping} keeps that only")
    reason = "it does not say that it keeps the first message only"
    return Obstacle(last.place, f"{reason}; {keeping} does")


def split_from_all(array: tree.Node) -> tuple[tree.Node, tuple[tree.Method, ...]] | None:
    """Return the expression before `from_all()`, and the steps behind it; None for others."""
    steps: list[tree.Method] = []
    while isinstance(array, tree.Method) and array.name in _STEP_METHODS:
        steps.append(array)
        array = array.target
    if not (isinstance(array, tree.Method) and array.name == "from_all"):
        return None
    return array.target, tuple(reversed(steps))


def literal_argument(node: tree.Method, place: int) -> Any:
    """Return an argument of a call that is a literal; None when it is not."""
    argument = node.bound.arguments[place]
    return argument.value if isinstance(argument, StaticArgument) else None


def refuse_batch_access(node: tree.Method | tree.Call) -> None:
    """Refuse a call that reads other messages, or counts them, where that cannot be pre-aggregated.

    Raises:
        NotAggregatableError: it does.
    """
    if isinstance(node, tree.Method):
        _refuse_final_method(node)
        if node.name == "from" and literal_argument(node, 0) == 0:
            return  # the first message is at hand
    if node.name == "batch_index" or "batch" not in node.bound.declaration.uses:
        return
    if node.name == "from_all":
        reason = f"from_all() can be aggregated when it is followed by {AGGREGATE_METHODS}; "
        reason += "here all values are kept"
    elif node.name == "from":
        reason = "from() can be aggregated as from(0) and from(-1): other messages are not kept"
    else:
        kind = "method" if isinstance(node, tree.Method) else "function"
        reason = f"the {kind} {node.name} reads other messages in a way that cannot be aggregated"
    raise NotAggregatableError(node.place, reason)


def _refuse_final_method(node: tree.Method) -> None:
    if split_from_all(node.target) is None or node.name in _STEP_METHODS:
        return
    if node.name in ("sort", "sort_by"):
        reason = (
            f"{node.name}() needs all values at once; median(), percentile(), top_k(), min_by() "
            "and max_by() give what is usually taken from sorted ones, and can be aggregated"
        )
    elif node.name == "fold":
        reason = (
            "fold() goes from message to message in order of arrival, and what it comes to for "
            "some of them cannot be brought together with what it comes to for others"
        )
    elif node.name in ("index", "top_k"):
        literal = "0 or -1" if node.name == "index" else "a literal number"
        reason = f"{node.name}() of from_all() can be aggregated for {literal}"
    elif node.name == "slice":
        reason = "slice() of from_all() can be aggregated as slice(0, n) and slice(-n), "
        reason += "for a literal number"
    elif node.name == "unique":
        reason = "unique() of from_all() can be aggregated without an argument; "
        reason += "map_each() can stand before it"
    else:
        reason = f"{node.name}() needs all values at once; from_all() can be aggregated when "
        reason += f"followed by {AGGREGATE_METHODS}"
    raise NotAggregatableError(node.end or node.place, reason)
