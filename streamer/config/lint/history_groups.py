"""Lints expectations that compare each group of a window with all groups: their numbers mix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamer.config.read_context import ReadContext
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.keyed_state import name_ungrouped_histories

_CODE: Final = "mixed_groups"
_GROUPING: Final = ("group_by_value", "group_by")


def check_history_groups(
    context: ReadContext, processors: Iterable[ParsedComponent | None]
) -> None:
    """Add an error for each expectation that compares groups and does not name them.

    Args:
        context: knows the places that keep state by key, and gets the findings.
        processors: the pipeline.
    """
    nodes = {place.path: place.node for place in context.stateful_places}
    for one, before in _find_grouped(processors):
        node = nodes.get(f"{one.path}.{one.name}")
        names = name_ungrouped_histories(one.name, one.config)
        if node is None or not names:
            continue
        context.findings.add_at(
            node,
            _CODE,
            f"{', '.join(names)} compares every group of {before} with all groups of the window",
            f"set history.group to the value of the group, or move expect before {before}",
        )


def _find_grouped(
    processors: Iterable[ParsedComponent | None],
) -> Iterator[tuple[ParsedComponent, str]]:
    """Return the processors that get groups, with the name of what makes them."""
    before = ""
    for one in processors:
        if one is None:
            continue  # something is wrong with it
        if before:
            yield one, before
            yield from ((inner, before) for inner in _walk_inner(one))
        elif one.name not in _GROUPING:
            yield from _find_grouped(child_components(one))
        if one.name in _GROUPING:
            before = one.name


def _walk_inner(one: ParsedComponent) -> Iterator[ParsedComponent]:
    for inner in child_components(one):
        yield inner
        yield from _walk_inner(inner)
