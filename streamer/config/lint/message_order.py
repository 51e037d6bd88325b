"""Whether a config looks at the first or the last message of a window, and means by its time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Final

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.analysis.read_write_sets import find_reads
from streamer.bloblang.analysis.single_reads import find_end_reads, find_own_reads
from streamer.bloblang.mapping import Mapping as Compiled
from streamer.config.nodes import Mapping, Node, Scalar, Sequence
from streamer.config.read_context import ReadContext

_KINDS: Final = frozenset({"tumbling_window", "hopping_window", "sliding_window", "session_window"})
_MAPPINGS: Final = ("mapping", "bloblang")
_QUERIES: Final = re.compile(r"\$\{!(.*?)\}", re.DOTALL)
_HINT: Final = (
    "write order: event_time for the first or last by timestamp_mapping, or order: arrival if it "
    "is to be the one that came first or last"
)

Paths = Items[tuple[str, ...]]
"""Paths in a message's document."""


def check_message_order(context: ReadContext, root: Mapping) -> None:
    """Add a warning where one message of a window is looked at, and nothing says in which order.

    Args:
        context: gets the findings.
        root: the config's tree.
    """
    buffer = root.entries.get("buffer")
    kinds = buffer[1].entries.items() if buffer and isinstance(buffer[1], Mapping) else ()
    for name, (_, body) in kinds:
        if name not in _KINDS or not isinstance(body, Mapping):
            continue
        if "order" in body.entries or "timestamp_mapping" not in body.entries:
            continue
        having = _compile_at(body, "having")
        path = None if having is None else _foreign_path(having, body)
        if path is not None:
            read_text = ".".join(("this", *path))
            message = (
                f"having looks at {read_text} of the window's first message, in order of arrival"
            )
            context.findings.add_at(body.entries["having"][1], "order_of_arrival", message, _HINT)
        _check_pipeline(context, root, body)


def _check_pipeline(context: ReadContext, root: Mapping, body: Mapping) -> None:
    """Add a warning for each mapping that looks at the first message, or at the last."""
    groups = _grouping_paths(root)
    for node, mapping in _pipeline_mappings(root):
        for read in find_end_reads(mapping):
            message = f"{read.text} takes messages of the window in order of arrival"
            context.findings.add_at(node, "order_of_arrival", message, _HINT)
        path = _foreign_path(mapping, body, groups) if mapping.only_index == 0 else None
        if path:
            read_text = ".".join(("this", *path))
            message = f"{read_text} is that of the window's first message, in order of arrival"
            context.findings.add_at(node, "order_of_arrival", message, _HINT)


def _foreign_path(mapping: Compiled, body: Mapping, groups: Paths = ()) -> tuple[str, ...] | None:
    """Return a path that a mapping reads of one message, and that is no part of the key.

    Args:
        mapping: the mapping.
        body: the buffer's fields.
        groups: paths by which the pipeline groups messages.
    """
    key = _compile_at(body, "key_mapping")
    keys = list(groups)
    keys += [] if key is None else [one.path for one in find_reads(key) if not one.metadata]
    for path in find_own_reads(mapping):
        if not any(path[: len(of_key)] == of_key for of_key in keys):
            return path
    return None


def _grouping_paths(root: Mapping) -> Paths:
    """Return the paths that the pipeline's `group_by_value` processors read."""
    paths: list[tuple[str, ...]] = []
    for item in _list_processors(root):
        group = item.entries.get("group_by_value")
        entry = group[1].entries.get("value") if group and isinstance(group[1], Mapping) else None
        if entry is not None and isinstance(entry[1], Scalar):
            for query in _QUERIES.findall(entry[1].text):
                paths += _paths_of(query)
    return paths


def _paths_of(query: str) -> Paths:
    try:
        reads = find_reads(compile_mapping(f"root = {query}"))
    except BloblangError:
        return ()
    return [read.path for read in reads if not read.metadata]


def _pipeline_mappings(root: Mapping) -> Iterator[tuple[Node, Compiled]]:
    """Give the mappings of the pipeline, each with its node."""
    for item in _list_processors(root):
        for name in _MAPPINGS:
            compiled = _compile_at(item, name)
            if compiled is not None:
                yield item.entries[name][1], compiled


def _list_processors(root: Mapping) -> list[Mapping]:
    pipeline = root.entries.get("pipeline")
    if pipeline is None or not isinstance(pipeline[1], Mapping):
        return []
    processors = pipeline[1].entries.get("processors")
    if processors is None or not isinstance(processors[1], Sequence):
        return []
    return [item for item in processors[1].items if isinstance(item, Mapping)]


def _compile_at(body: Mapping, name: str) -> Compiled | None:
    """Return a field's mapping; None where there is none, or one with a mistake."""
    entry = body.entries.get(name)
    if entry is None or not isinstance(entry[1], Scalar) or not entry[1].text.strip():
        return None
    try:
        return compile_mapping(entry[1].text)
    except BloblangError:
        return None
