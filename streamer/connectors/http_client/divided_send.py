"""Requests with the items of many messages, which are divided until it is known who is to blame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from streamer.core.errors import StreamerError
from streamer.sdk.output.protocols import SendError


class RequestItem(Protocol):
    """The part of a request that one message is."""

    @property
    def index(self) -> int:
        """The message's place in its batch."""

    @property
    def lines(self) -> bytes:
        """The text of the part."""


T = TypeVar("T", bound=RequestItem)

SendRequest = Callable[[Sequence[T]], "dict[int, str] | None"]
"""Sends items as one request: returns why some have failed, by index, and None where the server
refuses several for the sake of one; raises a StreamerError where it cannot take any now."""


def send_divided(
    items: Sequence[T], limit: int, send: SendRequest[T], count: int = 0
) -> tuple[dict[int, str], str | None]:
    """Send items, in as few requests as the server takes.

    Args:
        items: all of them, in order.
        limit: bytes of a request, beyond which there is another one.
        send: sends some of them.
        count: items of a request, at most; 0 for no such limit.

    Returns:
        Why some have failed, by the index of their message, and why no more was sent.
    """
    failed: dict[int, str] = {}
    outage: str | None = None
    waiting = [*_split_by_size(items, limit, count)][::-1]
    while waiting:
        part = waiting.pop()
        try:
            # Behind what the server did not take, nothing is tried.
            refused = {} if outage else send(part)
        except StreamerError as error:
            outage = str(error)
        if outage:
            failed |= {item.index: outage for item in part}
        elif refused is None:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
        else:
            failed |= refused
    return failed, outage


def raise_failures(failed: dict[int, str], outage: str | None, number: int) -> None:
    """Raise what has failed of so many messages, where anything has.

    Raises:
        SendError: some have failed; it has no errors by index where all have, for one outage.
    """
    if outage and len(failed) == number and all(text == outage for text in failed.values()):
        raise SendError(outage)
    if failed:
        raise SendError(outage or next(iter(failed.values())), failed)


def _split_by_size(items: Sequence[T], limit: int, count: int) -> Iterator[Sequence[T]]:
    start, size = 0, 0
    for number, item in enumerate(items):
        if size and (size + len(item.lines) > limit or number - start == count):
            yield items[start:number]
            start, size = number, 0
        size += len(item.lines)
    if start < len(items):
        yield items[start:]
