"""Results of windows on their way from a worker to the driver's store of results.

What the pipeline makes of a window does not say which window it was, for a mapping may have removed
the metadata that do: so it is noted while the window is in hand. The rows travel beside what is
written to the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from streamer.core.json.bulk import payloads_of
from streamer.core.json.dump import dump_json, dump_json_texts
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN
from streamer.engine.report.capture_request import CAPTURES_RESULTS
from streamer.engine.report.result_frame import RESULTS_OUTPUT, Payload
from streamer.engine.results.rows import encode_rows
from streamer.engine.stage.window_strategies import (
    ApplyMapping,
    EmissionProcessing,
    SingleProcessing,
)
from streamer.plan import Plan
from streamer.window import Emission
from streamer.window.pack.window_metadata import (
    WINDOW_COUNT,
    WINDOW_EMIT,
    WINDOW_END,
    WINDOW_END_MS,
    WINDOW_END_OFFSET,
    WINDOW_KEY,
    WINDOW_MAX_TIME,
    WINDOW_START,
    WINDOW_START_MS,
    WINDOW_START_OFFSET,
    format_key,
)

_WINDOW_METADATA: Final = frozenset(
    (
        WINDOW_START,
        WINDOW_END,
        WINDOW_MAX_TIME,
        WINDOW_START_MS,
        WINDOW_END_MS,
        WINDOW_KEY,
        WINDOW_EMIT,
        WINDOW_COUNT,
    )
)
_NO_RESULTS: Final = frozenset(("failed", "dropped"))
"""Reasons of emissions of messages that pass the windows by."""

_MAX_BYTES: Final = 4 << 20
_MAX_ROWS: Final = 50_000


class ResultCapture:
    """Notes the results of one shard in a micro-batch.

    Attributes:
        takes_unbounded: whether results of windows without bounds in time are noted, too.
    """

    def __init__(self, plan: Plan) -> None:
        """Take the plan of a stream with windows."""
        window = plan.window
        # A canary compares windows without bounds too; for queries, results need an end.
        self.takes_unbounded = CAPTURES_RESULTS.get()
        self._size = (window.implicit_size or 0) if window is not None else 0
        self._kind = plan.key.kind if plan.key is not None else "interpolation"
        self._emission: Emission | None = None
        self._ordinal = -1
        self._part = 0
        # Columns: tuples of so many rows would keep the garbage collector busy.
        self._keys: list[bytes | None] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._emits: list[str] = []
        self._ordinals: list[int] = []
        self._parts: list[int] = []
        self._contents: list[bytes] = []
        self._metadata: list[str | None] = []
        self._errors: list[str | None] = []
        self._bytes = 0

    def add_results(self, payloads: Iterable[Payload]) -> Iterator[Payload]:
        """Pass payloads on, and give the results beside them that were noted meanwhile."""
        for payload in payloads:
            yield payload
            if self._bytes >= _MAX_BYTES or len(self._parts) >= _MAX_ROWS:
                yield from self._flush()
        yield from self._flush()

    def wrap_processing(self, processing: SingleProcessing) -> EmissionProcessing:
        """Note what becomes of each emission that goes through a processing."""
        return _CapturedProcessing(processing, self)

    def wrap_messages(self, processing: SingleProcessing) -> EmissionProcessing:
        """Note what becomes of each message of emissions that are batches of one message each."""
        return _CapturedMessages(processing, self)

    def wrap_mapping(self, apply: ApplyMapping) -> ApplyMapping:
        """Note what a mapping makes of each of many emissions."""

        def apply_captured(emissions: Sequence[Emission]) -> list[Message | None]:
            messages = apply(emissions)
            self._add_each(emissions, messages)
            return messages

        return apply_captured

    def begin(self, emission: Emission) -> None:
        """Begin an emission: the batches that are added next are made of it."""
        if emission.end is None and self.takes_unbounded and emission.reason not in _NO_RESULTS:
            emission = _name_bounds(emission)
        self._emission = emission
        self._ordinal += 1
        self._part = 0

    def add(self, batch: Batch) -> None:
        """Note a batch that the pipeline has made of the emission in hand."""
        emission = self._emission
        # What has failed before the windows, and passes them by, is no result.
        if emission is None or emission.end is None:
            return
        part, count = self._part, len(batch)
        self._part += count
        self._keys += [emission.key] * count
        self._starts += [self._start(emission)] * count
        self._ends += [min(emission.end, INT64_MAX)] * count
        self._emits += [emission.reason] * count
        self._ordinals += [self._ordinal] * count
        self._parts += range(part, self._part)
        self._add_columns(batch)

    def _add_each(self, emissions: Sequence[Emission], made: Sequence[Message | None]) -> None:
        """Note what the pipeline has made of some emissions, of each a message, or none."""
        kept = [
            place
            for place, (emission, message) in enumerate(zip(emissions, made, strict=True))
            if message is not None and emission.end is not None
        ]
        some = [emissions[place] for place in kept]
        first = self._ordinal + 1
        self._ordinal += len(emissions)
        self._keys += [emission.key for emission in some]
        self._starts += [self._start(emission) for emission in some]
        self._ends += [min(emission.end or 0, INT64_MAX) for emission in some]
        self._emits += [emission.reason for emission in some]
        self._ordinals += [first + place for place in kept]
        self._parts += [0] * len(kept)
        self._add_columns(
            [message for message in map(made.__getitem__, kept) if message is not None]
        )

    def _add_columns(self, batch: Batch) -> None:
        contents = payloads_of(batch)
        self._contents += contents
        self._metadata += [_own_metadata(message.meta) for message in batch]
        self._errors += [message.error for message in batch]
        self._bytes += sum(map(len, contents))

    def _flush(self) -> Iterator[Payload]:
        """Give what was noted."""
        if not self._parts:
            return
        columns: tuple[list[Any], ...] = (
            *(self._starts, self._ends, self._emits, self._ordinals, self._parts),
            *(self._contents, self._metadata, self._errors),
        )
        body = encode_rows((*self._key_columns(), *columns))
        for column in (self._keys, *columns):
            column.clear()
        self._bytes = 0
        yield Payload(0, RESULTS_OUTPUT, "", body, joins=False)

    def _start(self, emission: Emission) -> int:
        start = emission.start
        if start is None:
            assert emission.end is not None
            start = emission.end - self._size
        # A window may begin before the least time, and end after the largest.
        return max(start, INT64_MIN)

    def _key_columns(self) -> tuple[list[str | None], list[str | None], list[int | None]]:
        """Return keys as texts and as JSON, and which check of a `group_by` they stand for."""
        keys, count = self._keys, len(self._keys)
        if self._kind == "checks":
            return [None] * count, [None] * count, [int(key) if key else None for key in keys]
        if self._kind == "mapping":
            texts = [None if key is None else format_key(key) for key in keys]
            return texts, [None if key is None else key.decode() for key in keys], [None] * count
        # Messages that could not be grouped have the empty key.
        texts = [key.decode(errors="replace") if key else None for key in keys]
        known = [text for text in texts if text is not None]
        written = iter(dump_json_texts(known))
        json = [None if text is None else next(written).decode() for text in texts]
        return texts, json, [None] * count


class _CapturedProcessing:
    """Runs emissions one by one, and notes their batches."""

    def __init__(self, processing: SingleProcessing, capture: ResultCapture) -> None:
        self._processing = processing
        self._capture = capture

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run emissions through the processors."""
        for emission, batches in self._processing.run_singly(emissions):
            self._capture.begin(emission)
            for batch in batches:
                self._capture.add(batch)
                yield batch


class _CapturedMessages:
    """Runs messages of which each is an emission by itself, and notes the batches of each."""

    def __init__(self, processing: SingleProcessing, capture: ResultCapture) -> None:
        self._captured = _CapturedProcessing(processing, capture)

    def run(self, emissions: Iterable[Emission]) -> Iterator[Batch]:
        """Run the messages through the processors."""
        return self._captured.run(
            Emission(None, [message], emission.reason)
            for emission in emissions
            for message in emission.messages
        )


def _name_bounds(emission: Emission) -> Emission:
    """Return an emission with the bounds and the key that the metadata of its messages have.

    Those of a count window are the numbers of its messages among those of its key. Where there are
    none, the emissions of a key are told apart by their order.
    """
    batch = emission.messages
    meta: Mapping[str, Any] = batch[0].meta if isinstance(batch, list) and batch else {}
    start, end = 0, 0
    if WINDOW_START_OFFSET in meta:
        start, end = meta[WINDOW_START_OFFSET], meta[WINDOW_END_OFFSET]
    elif WINDOW_END in meta:
        start, end = (parse_rfc3339(meta[name]).ns for name in (WINDOW_START, WINDOW_END))
    key = emission.key
    if key is None and WINDOW_KEY in meta:
        key = dump_json(meta[WINDOW_KEY])
    return Emission(end, [], emission.reason, key, start)


def _own_metadata(meta: Mapping[str, Any]) -> str | None:
    if meta.keys() <= _WINDOW_METADATA:
        return None
    own = {name: value for name, value in meta.items() if name not in _WINDOW_METADATA}
    return dump_json(own).decode(errors="replace")
