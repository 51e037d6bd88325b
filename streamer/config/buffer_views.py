"""Configs of several buffers, seen as so many configs of one buffer each."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamer.config.model import output_of
from streamer.config.nodes import Mapping, Node, Sequence
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

_BUFFERS: Final = "buffers"
_ENTRY_FIELDS: Final = ("pipeline", "output")


class BufferView(NamedTuple):
    """A config as one of its buffers sees it: with its own `buffer`, `pipeline` and `output`.

    Attributes:
        root: the tree.
        parsed: its top level.
    """

    root: Mapping
    parsed: ParsedFields


def split_buffers(root: Mapping, parsed: ParsedFields) -> list[BufferView]:
    """Return the views of a config: itself, where it has no list of buffers.

    Args:
        root: the config's tree.
        parsed: its top level.
    """
    buffers = tuple(one for one in parsed[_BUFFERS] or () if one is not None)
    entry: tuple[Node, Node] | None = root.entries.get(_BUFFERS)
    if not buffers or entry is None or not isinstance(entry[1], Sequence):
        return [BufferView(root, parsed)]
    items = [item for item in entry[1].items if isinstance(item, Mapping)]
    if len(items) != len(buffers) or parsed["output"] is None:
        return []
    return [
        _make_view(root, parsed, item, buffer, buffers)
        for item, buffer in zip(items, buffers, strict=True)
    ]


def _make_view(
    root: Mapping,
    parsed: ParsedFields,
    item: Mapping,
    buffer: ParsedComponent,
    buffers: tuple[ParsedComponent, ...],
) -> BufferView:
    place = buffer.place
    assert place is not None
    entries = {name: entry for name, entry in root.entries.items() if name != _BUFFERS}
    named = {name: entry for name, entry in item.entries.items() if name not in _ENTRY_FIELDS}
    entries["buffer"] = (
        root.entries[_BUFFERS][0],
        Mapping(item.source, item.start, item.end, named),
    )
    entries |= {name: item.entries[name] for name in _ENTRY_FIELDS if name in item.entries}
    output = output_of(buffer, buffers, parsed["output"])
    if output is None:
        entries.pop("output", None)
        output = ParsedComponent(Kind.OUTPUT, "drop")
    pipeline = ParsedFields({**parsed["pipeline"], "processors": place.processors})
    values = {**parsed, "buffer": buffer, "pipeline": pipeline, "output": output}
    return BufferView(
        Mapping(root.source, root.start, root.end, entries),
        ParsedFields(
            values, {name: parsed.place(name) for name in parsed if parsed.is_given(name)}
        ),
    )
