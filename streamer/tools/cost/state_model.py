"""The state of a buffer at its peak, and its writes, by what a sample took.

The sample is measured as one micro-batch, and as several. Where windows keep whole messages, the
state follows the messages. Where they pre-aggregate, each micro-batch adds one entry for each key
and pane that it has. The two measurements tell how much an entry grows with its messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.core.durations import SECOND
from streamer.plan import Plan
from streamer.tools.cost.measure import BufferCost, SampleCost
from streamer.tools.cost.sample_facts import KeyFacts
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window_types import (
    Global,
    Join,
    Sliding,
    TableJoin,
    Tumbling,
)


def measure_hold(plan: Plan) -> int | None:
    """Return how long a message is held at most, ns; None where that is not bounded."""
    window = plan.window
    if isinstance(window, SystemWindow):
        return window.size + window.allowed_lateness
    if not isinstance(window, EventWindow):
        return None
    kind, lateness = window.kind, window.allowed_lateness
    if isinstance(kind, Tumbling | Sliding):
        return kind.size + lateness
    if isinstance(kind, Join):
        return max(abs(kind.before), abs(kind.after)) + lateness
    return None


def measure_step(plan: Plan) -> int | None:
    """Return the time from one window to the next, ns; None where windows are on no grid."""
    window = plan.window
    if isinstance(window, SystemWindow):
        return window.epoch
    if isinstance(window, EventWindow) and isinstance(window.kind, Tumbling):
        return window.kind.every
    return None


def count_windows(plan: Plan) -> float:
    """Return how many windows hold a message; 1 where that is not known."""
    window, step = plan.window, measure_step(plan)
    if step and isinstance(window, SystemWindow):
        return window.size / step
    if step and isinstance(window, EventWindow) and isinstance(window.kind, Tumbling):
        return window.kind.size / step
    return 1.0


@dataclass(frozen=True, slots=True)
class PeakState:
    """The state of one buffer at its peak.

    Attributes:
        held: messages in open windows, and rows of the table of a join.
        size: bytes.
    """

    held: float
    size: float


@dataclass(frozen=True, slots=True)
class BufferModel:
    """One buffer, measured twice.

    Attributes:
        whole: the cost of the sample as one micro-batch.
        cut: the cost of the sample in several.
        messages: of the sample.
        cut_messages: of one of several micro-batches.
        rate: messages a second that come to the stream; 0 where that is not known.
        keys: the keys of the sample.
    """

    whole: BufferCost
    cut: BufferCost
    messages: int
    cut_messages: int
    rate: float
    keys: KeyFacts

    @property
    def aggregates_panes(self) -> bool:
        """Whether each micro-batch adds an entry for each key and pane."""
        plan = self.whole.plan
        window = plan.window
        return plan.aggregation.text is not None and (
            window is not None and window.strategy == "panes"
        )

    def count_entries(self, messages: float) -> float:
        """Return how many keys and panes so many messages of the stream have together."""
        step = measure_step(self.whole.plan)
        panes = 1.0
        if step and self.rate:
            panes += messages / self.rate * SECOND / step
        return panes * self.keys.count_within(messages / panes)

    def count_waiting_messages(self) -> float:
        """Return how many messages of the stream come while one is held; 0 where that is open."""
        hold = measure_hold(self.whole.plan)
        return self.rate * hold / SECOND if hold is not None else 0.0

    def find_peak(self, batch: float, total: float | None) -> PeakState:
        """Return the state at its peak.

        Args:
            batch: messages of a micro-batch of the stream.
            total: messages that there are at all; None for no end.
        """
        held, size = float(self.cut.held), float(self.cut.state_bytes)
        window = self.whole.plan.window
        kind = window.kind if isinstance(window, EventWindow) else None
        if isinstance(kind, TableJoin | Global):
            growth = self._grow_keys(total)
            return PeakState(held * growth, size * growth)
        hold = measure_hold(self.whole.plan)
        share = self.cut.taken / max(self.messages, 1)
        if hold is None or not self.rate or not held:
            return PeakState(held, size)
        expected = self.count_waiting_messages()
        expected = min(expected, total if total is not None else expected)
        if self.aggregates_panes:
            size = self._aggregate_bytes(min(batch, expected)) * expected
        elif self.whole.plan.aggregation.text is not None:
            size *= self.keys.count_within(expected) / self.keys.count_within(held / (share or 1))
        else:
            size *= expected * share / held
        return PeakState(expected * share, size)

    def _grow_keys(self, total: float | None) -> float:
        if not self.keys.seen:
            return 1.0
        known = self.keys.total if total is None else self.keys.count_within(total)
        return max(known / self.keys.seen, 1.0)

    def _aggregate_bytes(self, batch: float) -> float:
        """Return the bytes of state for each message of a micro-batch of so many."""
        cut, whole = self.cut, self.whole
        held = cut.held / (cut.taken or 1) * self.messages
        per_message = cut.state_bytes / max(held, 1)
        entries = self.count_entries(batch) / batch
        sampled = self.count_entries(self.cut_messages) / self.cut_messages
        return per_message * entries / sampled * self._growth(whole, batch)

    def _growth(self, whole: BufferCost, batch: float) -> float:
        """Return how much larger an entry of a micro-batch is than one of the sample's."""
        small = self.cut.state_bytes / max(self.cut.held, 1)
        large = whole.state_bytes / max(whole.held, 1)
        density = {
            size: size / self.count_entries(size)
            for size in (float(self.cut_messages), float(self.messages), batch)
        }
        denser = density[self.messages] / density[self.cut_messages]
        if denser < _MIN_DENSER or not small or not large:
            return 1.0
        exponent = math.log(large * density[self.messages]) - math.log(
            small * density[self.cut_messages]
        )
        exponent = min(max(exponent / math.log(denser), 0.0), 1.0)
        return float((density[batch] / density[self.cut_messages]) ** exponent)


_MIN_DENSER = 1.5


@dataclass(frozen=True, slots=True)
class WriteModel:
    """Bytes that a micro-batch writes to the state, by those of two sizes.

    Attributes:
        whole: the sample as one micro-batch.
        cut: the sample in several.
    """

    whole: SampleCost
    cut: SampleCost

    def count_bytes(self, batch: float, held: float) -> float:
        """Return the bytes that a micro-batch of so many messages writes.

        Args:
            batch: the messages.
            held: messages of the stream that are held at a time: what closes in the micro-batch in
                which it has come is not written.
        """
        batch = min(batch, max(held, self.whole.batch_messages))
        large, small = self.whole.written_bytes, self.cut.written_bytes / self.cut.batches
        if not large or not small:
            return 0.0
        ratio = self.whole.batch_messages / self.cut.batch_messages
        exponent = min(max(math.log(large / small) / math.log(max(ratio, 2)), 0.0), 1.0)
        return float(large * (batch / self.whole.batch_messages) ** exponent)
