"""The plan of a window buffer: its mappings, the sharding key, and the pre-aggregation.

When the first processor after the buffer groups by an expression that looks at one message only,
the groups are all that the rest of the pipeline ever sees. So each group may live in a shard of
its own, and a window is released group by group.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from streamer.bloblang import Mapping, compile_interpolation, compile_mapping
from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.spec import ParsedComponent
from streamer.window.settings.window import Window

MAPPING_PROCESSORS: Final = ("mapping", "bloblang")


@dataclass(frozen=True, slots=True)
class ShardKey:
    """The expression that decides the shard of a message, and groups messages before they are kept.

    Attributes:
        expressions: as the config has them: one interpolation, or the checks of a `group_by`.
        kind: how they are read; a `mapping` gives the windows' own key, a second one that of the
            right side of a join.
        source: the path of the processor, or the field, that they were taken from.
    """

    expressions: tuple[str, ...]
    kind: Literal["interpolation", "checks", "mapping"]
    source: str

    @property
    def text(self) -> str:
        """The expressions in one line."""
        return " | ".join(self.expressions)

    @property
    def replaces_grouping(self) -> bool:
        """Whether a group needs no more grouping: a `group_by` still has its processors to run."""
        return self.kind == "interpolation"

    def compile(self, is_right: bool = False) -> Any:
        """Compile the expressions, for `window.Packer`; compiling is cached by text.

        Args:
            is_right: return the key of the right side of a join, which may have one of its own.
        """
        if self.kind == "interpolation":
            return compile_interpolation(self.expressions[0])
        if self.kind == "mapping":
            return compile_mapping(self.expressions[-1 if is_right else 0])
        return FirstCheck([compile_mapping(text) for text in self.expressions], self.text)


class FirstCheck:
    """The number of the first check that is true, as `group_by` looks for it; -1 for none."""

    doc_fn: Callable[[Any], Any] | None = None
    gives_text = False

    def __init__(self, checks: Sequence[Mapping], text: str) -> None:
        """Take the checks, and the text that stands for them."""
        self._checks = checks
        self.text = text

    def query(self, batch: Batch, index: int, ex: Execution) -> int:
        """Return the number; a check that fails is not true, and the processor says why."""
        for number, check in enumerate(self._checks):
            try:
                if query_bool(check, batch, index, ex):
                    return number
            except MessageError:
                continue
        return -1


def shard_key_of(processors: Sequence[ParsedComponent]) -> ShardKey | None:
    """Return the key that the first processor gives, or None when it gives none."""
    if not processors:
        return None
    first = processors[0]
    if first.name == "group_by_value":
        text = first.config["value"]
        key = ShardKey((text,), "interpolation", first.path)
        return key if _depends_on_one_message(compile_interpolation(text).uses, text) else None
    if first.name == "group_by":
        texts = tuple(group["check"] for group in first.config)
        if texts and all(
            _depends_on_one_message(compile_mapping(text).uses, text) for text in texts
        ):
            return ShardKey(texts, "checks", first.path)
    return None


def _depends_on_one_message(uses: Any, text: str) -> bool:
    """Return whether an expression gives the same before the window, for one message, as in it."""
    elsewhere = uses.batch or uses.now or uses.random or uses.impure or uses.error or uses.table
    return not elsewhere and not (uses.meta and _may_see_window(text))


def _may_see_window(text: str) -> bool:
    """Return whether an expression may read the window's own metadata, which is not there yet.

    Metadata that is named in so many words is looked at; any other access might be to anything.
    """
    named = re.findall(r"""(?:meta|metadata)\(\s*"([^"]*)"\s*\)|@([A-Za-z_]\w*)""", text)
    accesses = len(re.findall(r"(?:meta|metadata)\(|@", text))
    return accesses != len(named) or any("window_" in one + other for one, other in named)


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
    if processor.name not in MAPPING_PROCESSORS:
        what = f"{processor.path}: a {processor.name} may look at every message"
        return Aggregation(None, obstacle=what)
    if late_output:
        return Aggregation(None, obstacle="late_output wants the messages that are dropped")
    result = analyze_pre_aggregation(processor.config)
    if not isinstance(result, PreAggregation):
        return Aggregation(None, obstacle=f"{processor.path}: {result}")
    return Aggregation(
        result.text,
        processor.path,
        tuple(str(one) for one in result.aggregates if not one.only_fails),
    )


class WindowConditions(NamedTuple):
    """The queries that let a message begin or emit a window.

    Attributes:
        begin_when: true for a message that begins one; empty without.
        emit_when: true for a message that emits one; empty without.
    """

    begin_when: str = ""
    emit_when: str = ""


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of a stream.

    Attributes:
        window: their settings; None when there are none.
        timestamp: the mapping that gives a message's time; empty where windows have none.
        filter: the mapping that keeps a message; empty for all.
        gap: the mapping that gives the gap of a message's session; empty without one.
        conditions: the queries that let a message begin or emit a window.
        having: the mapping that lets a window's batch go on; empty for all.
        key: what messages are sharded by; None when all go to one shard.
        aggregation: whether windows keep messages, or what the pipeline's mapping makes of them.
        right_timestamp: the mapping that gives the time of a message of the right side of a join,
            where it has one of its own; else empty.
    """

    window: Window | None
    timestamp: str
    filter: str
    gap: str
    conditions: WindowConditions
    having: str
    key: ShardKey | None
    aggregation: Aggregation
    right_timestamp: str = ""


NO_WINDOWS: Final = WindowPlan(None, "", "", "", WindowConditions(), "", None, Aggregation(None))
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
        keys = (buffer.key, buffer.right_key)
        texts = tuple(_mapping_text(one) for one in keys if one is not None)
        key = ShardKey(texts, "mapping", f"{component.path}.key_mapping")
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
        _mapping_text(buffer.gap),
        WindowConditions(_mapping_text(buffer.begin_when), _mapping_text(buffer.emit_when)),
        _mapping_text(having),
        key,
        aggregation,
        _mapping_text(buffer.right_timestamp),
    )


def describe_window_state(window: Window, aggregation: Aggregation) -> str:
    """Return what the state of windows is bound to: of those without end, what they aggregate."""
    if not window.holds_nothing:
        return window.fingerprint
    digest = hashlib.blake2b(
        "\n".join(aggregation.aggregates).encode(errors="replace"), digest_size=8
    )
    return f"{window.fingerprint} of {digest.hexdigest()}"


def _mapping_text(mapping: Mapping | None) -> str:
    return "" if mapping is None else mapping.text
