"""Results of windows on their way from a worker to the driver's store of results.

What the pipeline makes of a window does not say which window it was, for a mapping may have removed
the metadata that do: so it is noted while the window is in hand. The rows travel beside what is
written to the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamer.documents import payloads
from streamer.engine.frame import KEPT, Payload
from streamer.message import Batch, Message
from streamer.plan import Plan
from streamer.retention.rows import packed
from streamer.value import dump_json, dump_texts
from streamer.window import Emission
from streamer.window.labels import COUNT, EMIT, END, END_MS, KEY, NEWEST, START, START_MS, key_text
from streamer.window.system import SystemWindow

_LABELS: Final = frozenset((START, END, NEWEST, START_MS, END_MS, KEY, EMIT, COUNT))
_MOST_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 50_000


class Results:
    """Notes the results of one shard in a micro-batch."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan of a stream with windows."""
        window = plan.window
        self._size = window.size if isinstance(window, SystemWindow) else 0
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

    def begin(self, emission: Emission) -> None:
        """Say what the batches are of that come next."""
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
        self._ends += [emission.end] * count
        self._emits += [emission.reason] * count
        self._ordinals += [self._ordinal] * count
        self._parts += range(part, self._part)
        self._note(batch)

    def add_each(self, emissions: Sequence[Emission], made: Sequence[Message | None]) -> None:
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
        self._ends += [emission.end or 0 for emission in some]
        self._emits += [emission.reason for emission in some]
        self._ordinals += [first + place for place in kept]
        self._parts += [0] * len(kept)
        self._note([message for message in map(made.__getitem__, kept) if message is not None])

    def _note(self, batch: Batch) -> None:
        contents = payloads(batch)
        self._contents += contents
        self._metadata += [_metadata(message.meta) for message in batch]
        self._errors += [message.error for message in batch]
        self._bytes += sum(map(len, contents))

    def full(self) -> Iterator[Payload]:
        """Give what was noted, if it is much."""
        if self._bytes >= _MOST_BYTES or len(self._parts) >= _MOST_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[Payload]:
        """Give what was noted."""
        if not self._parts:
            return
        columns: tuple[list[Any], ...] = (
            *(self._starts, self._ends, self._emits, self._ordinals, self._parts),
            *(self._contents, self._metadata, self._errors),
        )
        body = packed((*self._named(), *columns))
        for column in (self._keys, *columns):
            column.clear()
        self._bytes = 0
        yield Payload(0, KEPT, "", body, joins=False)

    def _start(self, emission: Emission) -> int:
        if emission.start is not None:
            return emission.start
        assert emission.end is not None
        return max(emission.end - self._size, -(2**63))

    def _named(self) -> tuple[list[str | None], list[str | None], list[int | None]]:
        """Return keys as texts and as JSON, and which check of a `group_by` they stand for."""
        keys, count = self._keys, len(self._keys)
        if self._kind == "checks":
            return [None] * count, [None] * count, [int(key) if key else None for key in keys]
        if self._kind == "mapping":
            texts = [None if key is None else key_text(key) for key in keys]
            return texts, [None if key is None else key.decode() for key in keys], [None] * count
        # Messages that could not be grouped have the empty key.
        texts = [key.decode(errors="replace") if key else None for key in keys]
        known = [text for text in texts if text is not None]
        written = iter(dump_texts(known))
        json = [None if text is None else next(written).decode() for text in texts]
        return texts, json, [None] * count


def _metadata(meta: Mapping[str, Any]) -> str | None:
    if meta.keys() <= _LABELS:
        return None
    own = {name: value for name, value in meta.items() if name not in _LABELS}
    return dump_json(own).decode(errors="replace")
