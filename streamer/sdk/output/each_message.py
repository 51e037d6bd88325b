"""Outputs that write each message by a request of its own, one behind the other."""

from __future__ import annotations

from collections.abc import Callable

from streamer.core.errors import MessageError, StreamerError
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection


class MessageRefusedError(StreamerError):
    """The receiver refuses a message for what is in it, so that a repetition is in vain.

    Attributes:
        reason: the kind of cause.
    """

    def __init__(self, text: str, reason: Reason = Reason.REFUSED) -> None:
        super().__init__(text)
        self.reason = reason


class ReceiverLostError(StreamerError):
    """Nothing has answered."""


def send_each(count: int, write: Callable[[int], None]) -> None:
    """Write the messages of a batch in order, by their index.

    A message that is refused, or of which nothing can be made, fails alone. Behind any other
    failure nothing is written, and what was written before is not written again.

    Args:
        count: the messages.
        write: writes the message of an index.

    Raises:
        SendError: some messages have failed.
    """
    failed: dict[int, str] = {}
    for index in range(count):
        try:
            write(index)
        except MessageError as error:
            failed[index] = make_invalid_rejection(str(error))
        except MessageRefusedError as error:
            failed[index] = Rejection(str(error), error.reason)
        except StreamerError as error:
            failed |= dict.fromkeys(range(index, count), str(error))
            break
    if failed:
        raise SendError(next(iter(failed.values())), failed)
