"""Retractions: what takes back an emitted result that no longer holds. Source: ksqlDB.

A result is known by its key and its bounds. It no longer holds when a session has other bounds now,
since it grew or was merged, or when `having` is no longer true for the window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from streamer.core.message import Message
from streamer.window.contract import Emission
from streamer.window.keyed.aggregate_batches import Bounds
from streamer.window.keyed.key_buckets import KeyBuckets, bucket_of
from streamer.window.pack.window_metadata import make_retraction_metadata


class Retractor:
    """Retracts the results of one micro-batch of a shard."""

    def __init__(self, keyed: bool) -> None:
        """Take whether windows have keys."""
        self._keyed = keyed
        # Results of this micro-batch for which `having` was not true, by key and bounds.
        self._hidden: dict[tuple[bytes, Bounds], None] = {}

    def retract(self, emission: Emission, is_emitted: bool) -> Iterator[tuple[Emission, Bounds]]:
        """Give the retractions that go ahead of a window's result, with the bounds of what goes.

        Args:
            emission: the result.
            is_emitted: whether `having` is true for it.
        """
        if emission.start is None or emission.end is None:
            return
        key = emission.key or b""
        bounds = emission.start, emission.end
        for earlier in sorted(emission.replaced):
            stays = earlier == bounds and is_emitted
            if not stays and (key, earlier) not in self._hidden:
                yield self._make_retraction(emission, earlier), earlier
        if is_emitted:
            self._hidden.pop((key, bounds), None)
        else:
            self._hidden[key, bounds] = None

    def forget_hidden(self, buckets: KeyBuckets) -> None:
        """Note in the records of keys that results were kept back, so that none is retracted."""
        by_bucket: defaultdict[int, list[tuple[bytes, Bounds]]] = defaultdict(list)
        for key, bounds in self._hidden:
            by_bucket[bucket_of(key, buckets.count)].append((key, bounds))
        for number, some in by_bucket.items():
            bucket = buckets.load(number)
            for key, bounds in some:
                if key in bucket.keys():  # noqa: SIM118
                    state = bucket.get(key)
                    for window in state.windows:
                        if (window.start, window.end) == bounds:
                            window.shown = ()
                    bucket.replace(key, state)
            buckets.save(number, bucket, len(bucket))

    def _make_retraction(self, emission: Emission, bounds: Bounds) -> Emission:
        """Make the retraction of an earlier result of a window."""
        start, end = bounds
        metadata = make_retraction_metadata(start, end, emission.key if self._keyed else None)
        messages = [Message(b"null", metadata)]
        # It goes with the result that takes its place, wherever its own window ended.
        return Emission(emission.end, messages, emission.reason, emission.key, start)
