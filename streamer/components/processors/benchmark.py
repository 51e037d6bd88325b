"""`benchmark`: logs how many messages pass through it.

It "logs basic throughput statistics of messages that pass through this processor". Source: the
documentation of Benthos's processor; there a timer logs, here the message that comes when the
interval is over.
"""

from __future__ import annotations

import threading
from typing import Final

from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

INTERVAL: Final = "interval"
COUNT_BYTES: Final = "count_bytes"

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "benchmark",
    "Logs how many messages pass through it.",
    description=(
        "Each worker logs the rate of its own messages: the first message after an interval "
        "writes a line. Rates of the whole stream are in the metrics and in the console."
    ),
    fields=(
        Field(
            INTERVAL,
            "string",
            "Time between two lines; `0s` for none.",
            default="5s",
            duration=True,
        ),
        Field(
            COUNT_BYTES,
            "bool",
            "True to count bytes too, for which messages are serialised.",
            default=True,
        ),
    ),
    examples=(
        Example(
            "Rates behind a filter",
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root = if this.amount < 10 { deleted() }\n"
            "    - benchmark:\n"
            "        interval: 10s\n",
        ),
    ),
    categories=("Utility",),
    limits="the rates of each worker, not of the stream",
)


class _ThroughputMeter:
    """Counts what passes in a worker, whichever of its tasks and threads it passes in."""

    def __init__(self, interval: int) -> None:
        """Begin with nothing; the interval is in ns."""
        self._interval = interval
        self._lock = threading.Lock()
        self._messages = self._bytes = 0
        self._begin: int | None = None

    def add(self, messages: int, size: int, now: int) -> tuple[float, float] | None:
        """Add messages; return their rate and that of bytes when the interval is over.

        Args:
            messages: their number.
            size: their bytes.
            now: a clock that never runs backwards, ns.
        """
        with self._lock:
            if self._begin is None:
                self._begin = now
            self._messages += messages
            self._bytes += size
            took = now - self._begin
            if took < self._interval or took <= 0:
                return None
            rates = self._messages * SECOND / took, self._bytes * SECOND / took
            self._begin, self._messages, self._bytes = now, 0, 0
            return rates


class BenchmarkProcessor:
    """Counts messages, logs their rate, and passes them on."""

    def __init__(
        self, meter: _ThroughputMeter | None, count_bytes: bool, origin: ComponentRef
    ) -> None:
        """Take the worker's meter, None for no lines, and who speaks."""
        self._meter = meter
        self._count_bytes = count_bytes
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Count the messages of a batch, and return it."""
        self._count(batch, ex)
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Count messages that are batches by themselves, and return them."""
        self._count(messages, ex)
        return messages

    def _count(self, messages: list[Message], ex: Execution) -> None:
        if self._meter is None:
            return
        size = sum(len(message.raw) for message in messages) if self._count_bytes else 0
        rates = self._meter.add(len(messages), size, ex.elapsed())
        if rates is None:
            return
        text = f"rolling stats: {rates[0]:.6g} msg/sec"
        if self._count_bytes:
            text += f", {_format_bytes(rates[1])}/sec"
        self._origin.log(ex, "INFO", text)


def _format_bytes(size: float) -> str:
    """Return a size with three digits and a decimal unit: 407 B, 1.2 kB."""
    power = 0
    while size >= 999.5 and power < len(_UNITS) - 1:
        size /= 1000
        power += 1
    return f"{size:.1f} {_UNITS[power]}" if power and size < 10 else f"{size:.0f} {_UNITS[power]}"


def build(parsed: ParsedFields, context: BuildContext) -> BenchmarkProcessor:
    """Take the worker's meter."""
    interval = parsed[INTERVAL]
    meter = context.worker_resource("meter", lambda: _ThroughputMeter(interval))
    origin = ComponentRef(context.component)
    return BenchmarkProcessor(meter if interval else None, parsed[COUNT_BYTES], origin)
