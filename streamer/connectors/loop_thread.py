"""An event loop in a thread of its own, whose coroutines are run from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A loop that is made at its first use. Threads may share it."""

    def __init__(self, name: str) -> None:
        """Take the name of the thread."""
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Return what a coroutine returns.

        Raises:
            TimeoutError: it takes longer than that.
        """
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, daemon=True, name=self._name
                ).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begin a coroutine, and do not wait for it; without a loop it is not begun."""
        if self._loop is None:
            work.close()
        else:
            asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the thread; another use makes another one."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
