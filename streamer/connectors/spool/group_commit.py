"""Group commit: what many senders bring while the disk is being synced is one block of the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.store import SpoolStore, StoreFullError

_MAX_BLOCK_BYTES: Final = 8 << 20
FULL_RETRY_S: Final = 0.2
BROKEN_RETRY_S: Final = 1.0


class GroupCommit:
    """Writes records of one event loop to a store, as few syncs as can be. Order is kept."""

    def __init__(self, store: SpoolStore) -> None:
        """Take the store; others may write to it too."""
        self._store = store
        self._waiting: list[tuple[Record, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def put(self, record: Record) -> None:
        """Return when a record is safe.

        One that is cancelled is either not kept, and raises so, or is being written already: then
        it returns as ever, and the task's `cancelling` tells who asks.

        Raises:
            StoreFullError: too much waits to be read.
            OSError: the disk is full or broken.
        """
        safe: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, safe))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        try:
            await asyncio.shield(safe)
        except asyncio.CancelledError:
            # What was answered as refused must not turn up later.
            kept = [one for one in self._waiting if one[1] is not safe]
            if len(kept) < len(self._waiting):
                self._waiting = kept
                raise
            await safe

    async def put_with_retry(self, record: Record, on_error: Callable[[str], Any]) -> None:
        """Return when a record is safe; while the store does not take it, it is tried again.

        That is the back pressure which a sender without answers feels.

        Args:
            record: what is to be kept.
            on_error: is told, once, why it must wait.
        """
        is_reported = False
        while True:
            try:
                return await self.put(record)
            except StoreFullError:
                await asyncio.sleep(FULL_RETRY_S)
            except OSError as e:
                if not is_reported:
                    on_error(f"cannot write to the spool: {e.strerror or e}; trying again")
                is_reported = True
                await asyncio.sleep(BROKEN_RETRY_S)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, size = 0, 0
            while group < len(self._waiting) and size < _MAX_BLOCK_BYTES:
                size += len(self._waiting[group][0].body)
                group += 1
            taken, self._waiting = self._waiting[:group], self._waiting[group:]
            error: Exception | None = None
            try:
                records = [record for record, _ in taken]
                # The loop's own threads: one of each store's would outlive its stream.
                await loop.run_in_executor(None, self._store.append, records)
            except (OSError, StoreFullError) as e:
                error = e
            for _, safe in taken:
                # One who has gone, or whose time is over, does not wait any more.
                if not safe.done():
                    safe.set_result(None) if error is None else safe.set_exception(error)
