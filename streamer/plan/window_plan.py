"""The plan of a window buffer: the mappings it evaluates, and the sharding key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import Mapping
from streamer.plan.aggregation import Aggregation, choose_aggregation
from streamer.plan.key import ShardKey, shard_key_of
from streamer.sdk.spec import ParsedComponent
from streamer.window.settings.window import Window


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of a stream.

    Attributes:
        window: their settings; None when there are none.
        timestamp: the mapping that gives a message's time; empty where windows have none.
        filter: the mapping that keeps a message; empty for all.
        having: the mapping that lets a window's batch go on; empty for all.
        key: what messages are sharded by; None when all go to one shard.
        aggregation: whether windows keep messages, or what the pipeline's mapping makes of them.
    """

    window: Window | None
    timestamp: str
    filter: str
    having: str
    key: ShardKey | None
    aggregation: Aggregation


NO_WINDOWS: Final = WindowPlan(None, "", "", "", None, Aggregation(None))
"""The windows of a stream without a window buffer."""


def make_window_plan(
    buffer: Any, component: ParsedComponent, processors: Sequence[ParsedComponent]
) -> WindowPlan:
    """Return the windows of a stream.

    Args:
        buffer: the buffer, built.
        component: the same as the config has it.
        processors: the pipeline.
    """
    window, having = buffer.settings, buffer.having
    key = None
    if window.keyed:
        key = ShardKey((buffer.key.text,), "mapping", f"{component.path}.key_mapping")
    elif window.strategy == "panes" and having is None:
        key = shard_key_of(processors)
    if (obstacle := window.aggregation_obstacle) is not None:
        aggregation = Aggregation(None, obstacle=obstacle)
    elif having is not None and having.uses.batch:
        aggregation = Aggregation(
            None, obstacle=f"{component.path}.having looks at the whole window"
        )
    else:
        aggregation = choose_aggregation(processors, key, buffer.late_output is not None)
    return WindowPlan(
        window,
        _mapping_text(buffer.timestamp),
        _mapping_text(buffer.filter),
        _mapping_text(having),
        key,
        aggregation,
    )


def _mapping_text(mapping: Mapping | None) -> str:
    return "" if mapping is None else mapping.text
