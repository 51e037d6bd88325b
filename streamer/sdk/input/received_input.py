"""A base for inputs whose messages cannot be read twice: they are kept on the driver's disk first.

Derive from `ReceivedInput` and write `receive`. It runs in a thread of the driver, gets messages
from wherever they come, and gives them to `receiver.put`, which returns when they are on the disk.
Then the sender may be told so. After a crash, `receiver.mark` is the mark that came with the newest
messages on the disk: an input whose system can go on from a position reads each message once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.core.message import Message
from streamer.sdk.input.input_context import InputContext, MessageSpool
from streamer.sdk.input.replayable import ReplayableSource

_FIRST_BACKOFF_S: Final = 0.1
_MAX_BACKOFF_S: Final = 10.0


class MessageReceiver:
    """The receiving side of an input.

    Attributes:
        mark: the mark of the newest messages that are on the disk; None before the first.
        log: takes a level, a text and fields.
    """

    def __init__(self, context: InputContext, spool: MessageSpool) -> None:
        """Take the context of the input, and the place of its messages."""
        self._context = context
        self._spool = spool
        self.mark = spool.mark
        self.log = context.log

    @property
    def stopping(self) -> bool:
        """Whether the stream takes no more messages; `receive` should return."""
        return self._context.stopping

    def wait(self, seconds: float) -> bool:
        """Wait, but no longer than until the stream stops; return whether it has."""
        return self._context.wait(seconds)

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Have something called that ends a call that waits, such as closing a socket."""
        self._context.on_stop(stop)

    def put(self, messages: Sequence[Message], mark: Any = None, *, as_batch: bool = False) -> None:
        """Return when messages are on the disk; it waits while the disk has no place for them.

        Args:
            messages: the messages, in order.
            mark: a JSON value to go on from after a restart; None to keep the one before.
            as_batch: whether they are one batch; each is a batch by itself otherwise.

        Raises:
            Exception: the stream has stopped first, and they are not safe. Let it pass.
        """
        if not messages:
            return
        self._spool.write(messages, mark, as_batch)
        if mark is not None:
            self.mark = mark


class ReceivedInput(ABC):
    """An input that receives messages in the driver; see the module.

    >>> class Greetings(ReceivedInput):
    ...     def receive(self, receiver: MessageReceiver) -> None:
    ...         begin = receiver.mark or 0
    ...         for number in range(begin, 3):
    ...             receiver.put([Message(b"hello %d" % number)], mark=number + 1)

    Attributes:
        name: names it in the log.
    """

    name: str = "input"

    @abstractmethod
    def receive(self, receiver: MessageReceiver) -> None:
        """Receive messages until the stream stops, or there are no more: then return.

        An error is logged, and the method is called again after a pause of up to 10 s.
        """

    def open(self, context: InputContext) -> ReplayableSource:
        """Begin to receive; return the source of what is on the disk."""
        spool = context.open_spool()
        if spool.was_ended:
            spool.close()
            return spool.source
        context.start(self.name, lambda: self._run(context, spool))
        return spool.source

    def _run(self, context: InputContext, spool: MessageSpool) -> None:
        pause = _FIRST_BACKOFF_S
        receiver = MessageReceiver(context, spool)
        while not context.stopping:
            before = receiver.mark
            try:
                self.receive(receiver)
            except Exception as error:
                if context.stopping:
                    return
                text = f"Failed to receive: {type(error).__name__}: {error}; trying again"
                context.log("ERROR", text, {"input": self.name})
                if receiver.mark != before:
                    pause = _FIRST_BACKOFF_S
                context.wait(pause)
                pause = min(pause * 2, _MAX_BACKOFF_S)
                continue
            if not context.stopping:
                spool.close()
            return
