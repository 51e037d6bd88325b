"""What a window buffer asks of messages, and what they are sharded by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamer.bloblang import Mapping
from streamer.plan.fold import Folding, folding_of
from streamer.plan.key import Key, key_of
from streamer.spec import ParsedComponent
from streamer.window.event import EventWindow
from streamer.window.kinds import EventTime, Session, Tumbling
from streamer.window.words import AnyWindow


@dataclass(frozen=True, slots=True)
class Windowing:
    """The windows of a stream.

    Attributes:
        window: their settings.
        timestamp: the mapping that gives a message's time; empty where windows have none.
        filter: the mapping that keeps a message; empty for all.
        having: the mapping that lets a window's batch go on; empty for all.
        key: what messages are sharded by; None when all go to one shard.
        folding: whether windows keep messages, or what the pipeline's mapping makes of them.
    """

    window: AnyWindow
    timestamp: str
    filter: str
    having: str
    key: Key | None
    folding: Folding


def windowing_of(
    buffer: Any, component: ParsedComponent, processors: Sequence[ParsedComponent]
) -> Windowing:
    """Return the windows of a stream.

    Args:
        buffer: the buffer, built.
        component: the same as the config has it.
        processors: the pipeline.
    """
    late = buffer.late_output is not None
    if not hasattr(buffer, "having"):
        key = key_of(processors)
        folding = folding_of(processors, key, late)
        return Windowing(buffer.window, buffer.timestamp.text, "", "", key, folding)
    has_key, having = buffer.key is not None, buffer.having
    window = EventWindow(buffer.window, buffer.time or EventTime(), has_key)
    key = None
    if has_key:
        key = Key((buffer.key.text,), "mapping", f"{component.path}.key_mapping")
    elif window.way == "panes" and having is None:
        key = key_of(processors)
    if (obstacle := _obstacle(window)) is not None:
        folding = Folding(None, obstacle=obstacle)
    elif having is not None and having.uses.batch:
        folding = Folding(None, obstacle=f"{component.path}.having looks at the whole window")
    else:
        folding = folding_of(processors, key, late)
    return Windowing(
        window,
        _text(buffer.timestamp),
        _text(buffer.filter),
        _text(having),
        key,
        folding,
    )


def _obstacle(window: EventWindow) -> str | None:
    """Return why windows of this kind keep their messages, whatever the mapping; None if not."""
    if not isinstance(window.kind, Tumbling | Session):
        return "messages leave sliding and count windows again, and joins pair them one by one"
    if window.time.emit == "forward":
        return "emit: forward gives messages on as they come, and keeps none"
    return None


def _text(mapping: Mapping | None) -> str:
    return "" if mapping is None else mapping.text
