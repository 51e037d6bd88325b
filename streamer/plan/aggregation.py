"""Chooses the mapping for which windows pre-aggregate, so that they need not keep messages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.plan.key import ShardKey
from streamer.sdk.spec import ParsedComponent

_MAPPINGS = ("mapping", "bloblang")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The pre-aggregation of a stream's windows.

    Attributes:
        text: the mapping that their groups are pre-aggregated for; None when they keep messages.
        source: the path of its processor.
        aggregates: what it asks of all messages of a group, in words.
        obstacle: what prevents pre-aggregation, with its place; empty when they are pre-aggregated.
    """

    text: str | None
    source: str = ""
    aggregates: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def identity(self) -> str:
        """The identity of the mapping; empty when windows keep messages."""
        if self.text is None:
            return ""
        return hashlib.blake2b(self.text.encode(errors="replace"), digest_size=8).hexdigest()


def mapping_index(key: ShardKey | None) -> int:
    """Return the place in the pipeline of the mapping that a window's groups are given to."""
    return 1 if key is not None and key.replaces_grouping else 0


def choose_aggregation(
    processors: Sequence[ParsedComponent], key: ShardKey | None, late_output: bool
) -> Aggregation:
    """Return the pre-aggregation of a window's messages for a pipeline.

    Args:
        processors: the pipeline.
        key: what its messages are grouped by before they are kept.
        late_output: whether dropped messages are wanted whole.
    """
    index = mapping_index(key)
    if len(processors) <= index:
        return Aggregation(None, obstacle="there is no mapping that makes one of many")
    processor = processors[index]
    if processor.name not in _MAPPINGS:
        what = f"{processor.path}: a {processor.name} may look at every message"
        return Aggregation(None, obstacle=what)
    if late_output:
        return Aggregation(None, obstacle="late_output wants the messages that are dropped")
    result = analyze_pre_aggregation(processor.config)
    if not isinstance(result, PreAggregation):
        return Aggregation(None, obstacle=f"{processor.path}: {result}")
    return Aggregation(result.text, processor.path, tuple(map(str, result.aggregates)))
