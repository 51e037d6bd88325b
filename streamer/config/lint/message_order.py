"""Whether a config looks at the first or the last message of a window, and means by its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.analysis.read_write_sets import find_reads
from streamer.bloblang.analysis.single_reads import find_end_reads, find_own_reads
from streamer.bloblang.mapping import Mapping as Compiled
from streamer.config.nodes import Mapping, Node, Scalar, Sequence
from streamer.config.read_context import ReadContext

_KINDS: Final = frozenset({"tumbling_window", "hopping_window", "sliding_window", "session_window"})
_MAPPINGS: Final = ("mapping", "bloblang")
_HINT: Final = (
    "write order: event_time for the first or last by timestamp_mapping, or order: arrival if it "
    "is to be the one that came first or last"
)


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
        for node, mapping in _pipeline_mappings(root):
            for read in find_end_reads(mapping):
                message = f"{read.text} takes messages of the window in order of arrival"
                context.findings.add_at(node, "order_of_arrival", message, _HINT)


def _foreign_path(having: Compiled, body: Mapping) -> tuple[str, ...] | None:
    """Return a path that a mapping reads of one message, and that is no part of the key."""
    key = _compile_at(body, "key_mapping")
    keys = [] if key is None else [one.path for one in find_reads(key) if not one.metadata]
    for path in find_own_reads(having):
        if not any(path[: len(of_key)] == of_key for of_key in keys):
            return path
    return None


def _pipeline_mappings(root: Mapping) -> Iterator[tuple[Node, Compiled]]:
    """Give the mappings of the pipeline, each with its node."""
    pipeline = root.entries.get("pipeline")
    if pipeline is None or not isinstance(pipeline[1], Mapping):
        return
    processors = pipeline[1].entries.get("processors")
    if processors is None or not isinstance(processors[1], Sequence):
        return
    items = [item for item in processors[1].items if isinstance(item, Mapping)]
    for item in items:
        for name in _MAPPINGS:
            compiled = _compile_at(item, name)
            if compiled is not None:
                yield item.entries[name][1], compiled


def _compile_at(body: Mapping, name: str) -> Compiled | None:
    """Return a field's mapping; None where there is none, or one with a mistake."""
    entry = body.entries.get(name)
    if entry is None or not isinstance(entry[1], Scalar) or not entry[1].text.strip():
        return None
    try:
        return compile_mapping(entry[1].text)
    except BloblangError:
        return None
