"""A receiver: an event loop in a thread of the driver, from the start of a stream to its stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from streamer.sdk.input.input_context import InputContext

_READY_TIMEOUT_S: Final = 60.0


class ReceiverContext:
    """The context of a receiver's coroutine.

    Attributes:
        stop: set when the stream takes no more.
    """

    def __init__(self, ready: Future[None]) -> None:
        """Take the future that is resolved when the receiver is ready."""
        self.stop = asyncio.Event()
        self._ready = ready

    def set_ready(self) -> None:
        """Report that the receiver is ready for senders."""
        if not self._ready.done():
            self._ready.set_result(None)


Receive = Callable[[ReceiverContext], Awaitable[None]]


def start_receiver(context: InputContext, what: str, run: Receive) -> None:
    """Run a coroutine in a thread; return when it is ready.

    Args:
        context: the input's.
        what: names the thread.
        run: returns soon after `stop` is set; what it is doing then is cancelled a second later.

    Raises:
        Exception: what the coroutine has raised before it was ready.
    """
    begun: Future[None] = Future()
    loop = asyncio.new_event_loop()
    lock = threading.Lock()

    async def main() -> None:
        reception = ReceiverContext(begun)

        def stop() -> None:
            with lock, suppress(RuntimeError):  # the loop may have ended by itself
                loop.call_soon_threadsafe(reception.stop.set)

        context.on_stop(stop)
        running = asyncio.ensure_future(run(reception))
        stopped = asyncio.ensure_future(reception.stop.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await asyncio.wait({running}, timeout=1.0)
            running.cancel()
        stopped.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def thread() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())
        except Exception as e:
            if begun.done():
                raise
            begun.set_exception(e)
        finally:
            if not begun.done():
                begun.set_result(None)

    context.start(what, thread)
    begun.result(_READY_TIMEOUT_S)
