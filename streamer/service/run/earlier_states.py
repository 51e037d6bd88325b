"""States of earlier micro-batches of a stream that runs: read from its checkpoint beside it.

Spark's reader of state changes nothing, and keeps nothing from the stream. What it reads is
bounded, as one reading at a time is: a reading takes cores and disk that streams need.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339
from streamer.service.monitoring.state_windows import diff_windows, list_state_windows
from streamer.service.run.stream_host import StreamHost

MAX_LISTED_WINDOWS: Final = 20_000
"""Windows of a listing; those of more are not compared."""
MAX_STATE_BYTES: Final = 256 << 20
"""Bytes of what windows hold, beyond which a state is not read beside a running stream."""

_KEPT_LISTINGS: Final = 4
"""Listings that are kept for the next page, and for a comparison."""
_MAX_WAIT_S: Final = 10.0
"""Seconds for which a reading waits for another one."""


class EarlierStateError(StreamerError):
    """A state cannot be read now; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class StateListing:
    """The windows that were open after a micro-batch.

    Attributes:
        batch: the number of the micro-batch, over all generations.
        windows: with the columns of `state_windows.COLUMNS`, the oldest first.
        is_complete: whether these are all.
    """

    batch: int
    windows: list[dict[str, Any]]
    is_complete: bool


class EarlierStates:
    """Reads the states of earlier micro-batches. Many threads may call its methods."""

    def __init__(self) -> None:
        """Begin without a listing."""
        self._lock = threading.Lock()
        self._listings: OrderedDict[tuple[Any, ...], StateListing] = OrderedDict()

    def list_batches(self, host: StreamHost) -> list[dict[str, Any]]:
        """Return the micro-batches of a stream whose states are kept, the oldest first.

        Args:
            host: of the run.

        Returns:
            For each `micro_batch` and `at`, its time.

        Raises:
            StreamerError: the stream has no windows, or its checkpoint cannot be read.
        """
        from streamer.spark.checkpoint.state_history import list_batch_times

        _check_windows(host)
        try:
            times = list_batch_times(host.checkpoint)
        except OSError as e:  # Spark deletes the oldest ones meanwhile.
            raise EarlierStateError(f"the checkpoint changes: {e}; try again") from None
        return [{"micro_batch": batch, "at": format_rfc3339(time)} for batch, time in times]

    def list_windows(
        self, host: StreamHost, batch: int, key: str | None, held_bytes: int
    ) -> StateListing:
        """Return the windows that were open after a micro-batch.

        Args:
            host: of the run.
            batch: the micro-batch, numbered over all generations.
            key: lists only windows with just this key; None for all.
            held_bytes: what the windows of the stream hold now.

        Raises:
            StreamerError: the state is not kept, is too large, or is being read already.
        """
        _check_windows(host)
        _check_size(held_bytes)
        with self._hold():
            return self._read(host, batch, key)

    def compare(
        self, host: StreamHost, batches: tuple[int, int], key: str | None, held_bytes: int
    ) -> list[dict[str, Any]]:
        """Return the windows that differ between two micro-batches, as `diff_windows` does.

        Args:
            host: of the run.
            batches: the earlier and the later micro-batch, numbered over all generations.
            key: compares only windows with just this key; None for all.
            held_bytes: what the windows of the stream hold now.

        Raises:
            StreamerError: as of `list_windows`; or more windows are open than are compared.
        """
        _check_windows(host)
        _check_size(held_bytes)
        with self._hold():
            before, after = (self._read(host, batch, key) for batch in batches)
        for listing in (before, after):
            if not listing.is_complete:
                raise EarlierStateError(
                    f"micro-batch {listing.batch:,} has more than {MAX_LISTED_WINDOWS:,} open "
                    "windows: name a key, or use `streamer state diff` on a copy of the checkpoint"
                )
        return diff_windows(before.windows, after.windows)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=_MAX_WAIT_S):
            raise EarlierStateError("another state is being read: try again in some seconds")
        try:
            yield
        finally:
            self._lock.release()

    def _read(self, host: StreamHost, batch: int, key: str | None) -> StateListing:
        from streamer.spark.checkpoint.state_history import find_batch, open_state

        checkpoint, plan = host.checkpoint, host.stream.plan
        find_batch(checkpoint, batch)
        name = (str(checkpoint), checkpoint.identity, plan.fingerprint["window"], batch, key)
        if (known := self._listings.get(name)) is not None:
            self._listings.move_to_end(name)
            return known
        limit = MAX_LISTED_WINDOWS + 1
        with open_state(lambda: host.session, checkpoint, plan, batch) as stores:
            windows = list_state_windows(plan, stores, key, limit)
        is_complete = len(windows) <= MAX_LISTED_WINDOWS
        listing = StateListing(batch, windows[:MAX_LISTED_WINDOWS], is_complete)
        self._listings[name] = listing
        while len(self._listings) > _KEPT_LISTINGS:
            self._listings.popitem(last=False)
        return listing


def _check_windows(host: StreamHost) -> None:
    plan = host.stream.plan
    if plan.window is None:
        raise EarlierStateError(f"the stream has no windows ({plan.buffer.name}), and so no state")


def _check_size(held_bytes: int) -> None:
    if held_bytes > MAX_STATE_BYTES:
        raise EarlierStateError(
            f"its windows hold {held_bytes:,} bytes, and states of up to {MAX_STATE_BYTES:,} are "
            "read beside a running stream: use `streamer state` on a copy of the checkpoint"
        )
