"""The batches of a sample, each with the key and the time that its state goes by."""

from __future__ import annotations

from collections.abc import Callable

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.window_simulator import EventTimeReader
from streamer.plan import Plan
from streamer.window import DictStore
from streamer.window.pack.window_metadata import WINDOW_END, WINDOW_KEY
from streamer.window.state.keyed_values import KeyedValues


class SampledState:
    """State by key for a sample: as a stream has it that begins with the sample.

    Attributes:
        values: what processors keep.
    """

    def __init__(self, plan: Plan, ex: Execution, now: Callable[[], int]) -> None:
        """Begin with nothing.

        Args:
            plan: the stream's plan.
            ex: the run of the processors.
            now: the clock, Unix ns.
        """
        self.values = KeyedValues(DictStore(), plan.keyed_state.ttl)
        self._times = EventTimeReader(plan)
        self._ex = ex
        self._now = now
        self._clock = 0
        self._passes_messages = plan.window is not None and plan.window.passes_messages
        key = plan.key
        self._key = compile_mapping(key.text) if key is not None and key.kind == "mapping" else None

    def begin(self, batch: Batch) -> None:
        """Go on to a batch as the buffer gives it."""
        meta = batch[0].meta
        if self._passes_messages:
            time = self._times.read(batch[0], self._now())
            # Time never runs backwards.
            self._clock = max(self._clock, time or self._clock)
            self.values.begin(self._key_of(batch), self._clock)
            return
        key, end = meta.get(WINDOW_KEY), meta.get(WINDOW_END)
        named = None if key is None else str(key).encode(errors="surrogatepass")
        self.values.begin(named, None if end is None else parse_event_time(str(end)))

    def _key_of(self, batch: Batch) -> bytes | None:
        if self._key is None:
            return None
        try:
            return dump_json(self._key.query(batch, 0, self._ex))
        except MessageError:
            return None
