"""Strategies for pipelines that keep state by key: each batch runs with its own key and time.

They are those of `window_strategies`, one emission at a time: what a mapping keeps of a key must
not be mixed with what the next batch's does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.core.execution import Execution
from streamer.core.json.bulk import parse_batch
from streamer.core.message import Batch
from streamer.engine.report.emission_stats import EmissionStats
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.output_stage import Stage
from streamer.engine.stage.window_strategies import Outcome, SingleProcessing
from streamer.sdk.processing import Processor, run
from streamer.window import Emission
from streamer.window.contract import KeyedEmission
from streamer.window.state.keyed_values import KeyedValues

_MAX_SINGLES_PER_PAYLOAD: Final = 500
_MESSAGES_PER_PARSE: Final = 500
_WINDOW_KEY: Final = "window_key"


class EmissionKeys:
    """Takes the state of a shard from one batch to the next."""

    def __init__(self, values: KeyedValues, batch_time: int, is_keyed: bool) -> None:
        """Take the state.

        Args:
            values: the shard's.
            batch_time: the micro-batch's time, for batches without one, Unix ns.
            is_keyed: whether messages are spread over the shards by a key.
        """
        self._values = values
        self._batch_time = batch_time
        self._is_keyed = is_keyed

    def begin(self, emission: Emission, place: int = 0) -> None:
        """Go on to a batch.

        Args:
            emission: the batch; or several messages of which each is one.
            place: which of these.
        """
        key, time = self._read(emission, place)
        if key is None and self._is_keyed:
            # It has failed before it got a key, and is in any shard.
            self._values.suspend()
        else:
            self._values.begin(key, time)

    def preload(self, emissions: Iterable[Emission]) -> None:
        """Load the state of batches, so that nothing is asked of the store while they run."""
        self._values.preload(
            self._read(emission, place)[0]
            for emission in emissions
            for place in range(len(emission.messages) if emission.is_per_message else 1)
        )

    def _read(self, emission: Emission, place: int) -> tuple[bytes | None, int]:
        if isinstance(emission, KeyedEmission):
            return emission.keys[place], emission.times[place]
        key = emission.key
        if key is None and emission.is_per_message:
            # The pairs of a join have their key in their metadata alone.
            named = emission.messages[place].meta.get(_WINDOW_KEY)
            key = None if named is None else str(named).encode(errors="surrogatepass")
        return key, self._batch_time if emission.end is None else emission.end


@dataclass(frozen=True, slots=True)
class StatefulProcessing:
    """Runs each emission by itself, with its key (`SingleProcessing`)."""

    inner: SingleProcessing
    keys: EmissionKeys

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        for _, batches in self.run_singly(emissions):
            yield from batches

    def run_singly(self, emissions: Iterable[Emission]) -> Iterator[Outcome]:
        """Run each emission by itself; see `SingleProcessing`."""
        for emission, batches in self.inner.run_singly(emissions):
            yield emission, self._run_with_key(emission, batches)

    def _run_with_key(self, emission: Emission, batches: Iterable[Batch]) -> Iterator[Batch]:
        self.keys.begin(emission)
        yield from batches


@dataclass(frozen=True, slots=True)
class StatefulSingleRoute:
    """Takes messages of which each is a batch by itself, each with its key."""

    processors: Sequence[Processor]
    output: Stage
    keys: EmissionKeys
    stats: EmissionStats
    ex: Execution
    reads_documents: bool

    def run(self, emissions: Iterable[Emission], order: int) -> Iterator[Payload]:
        """Run emissions; see `RouteStrategy`."""
        made: list[Batch] = []
        for emission in self.stats.count_each(emissions):
            messages = emission.messages
            for place, message in enumerate(messages):
                if self.reads_documents and place % _MESSAGES_PER_PARSE == 0:
                    # One by one, it takes longer than all that is done with a message.
                    parse_batch(messages[place : place + _MESSAGES_PER_PARSE])
                self.keys.begin(emission, place)
                made += run(self.processors, [[message]], self.ex)
                if len(made) >= _MAX_SINGLES_PER_PAYLOAD:
                    yield from self.output.payloads(made, order, self.ex)
                    made = []
        yield from self.output.payloads(made, order, self.ex)


class KeyMarker:
    """A processor ahead of all others that goes on to the key of the batch that it is given.

    Where a worker has died, batches run twice: first in a forked process, whose state nobody sees.
    """

    def __init__(
        self, keys: EmissionKeys, emissions: Sequence[Emission], batches: Sequence[Batch]
    ) -> None:
        """Take the batches that come next, and what each is of."""
        self._keys = keys
        self._batches = batches
        places = (
            (emission, place)
            for emission in emissions
            for place in range(len(emission.messages) if emission.is_per_message else 1)
        )
        self._place_of = dict(zip(map(id, batches), places, strict=True))
        keys.preload(emissions)

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch as it is."""
        self._keys.begin(*self._place_of[id(batch)])
        return [batch]
