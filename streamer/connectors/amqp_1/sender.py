"""Sending: messages are on their way together, and the broker settles each."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.amqp_1.connection import Amqp1Connection, Amqp1Error, Link, connect
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.spec import ParsedFields

_OUTCOME_TIMEOUT_S: Final = 60.0
_TOO_LARGE: Final = "amqp:link:message-size-exceeded"
_MESSAGE_CONDITIONS: Final = frozenset(
    {
        "amqp:decode-error",
        "amqp:frame-size-too-small",
        "amqp:invalid-field",
        "amqp:not-allowed",
        "amqp:not-implemented",
        "amqp:precondition-failed",
        _TOO_LARGE,
    }
)
"""Conditions of a broker for what is in a message; others may pass."""


class OutgoingMessage(NamedTuple):
    """A message to send.

    Attributes:
        encoded: its bytes.
        has_address: whether it says by itself where it goes.
    """

    encoded: bytes
    has_address: bool


class SendResult(NamedTuple):
    """The result of sending.

    Attributes:
        failed: why, by the number of the message; a rejection where it is its own fault.
        error: what has ended the connection or its link; else None.
    """

    failed: dict[int, str]
    error: Amqp1Error | None


class SharedSender:
    """A connection with a sender, which threads use one after the other.

    It is made at its first use, and again when it is lost.
    """

    def __init__(self, parsed: ParsedFields, address: str, capabilities: Sequence[str]) -> None:
        """Set up; nothing is connected yet.

        Args:
            parsed: the fields of the client.
            address: the target; empty where each message has its own.
            capabilities: those that the target is to have.
        """
        self._parsed = parsed
        self._address = address
        self._capabilities = capabilities
        self._lock = threading.Lock()
        self._connection: Amqp1Connection | None = None
        self._link: Link = None

    def connect(self) -> None:
        """Connect, where there is no connection.

        Raises:
            Amqp1Error: there is none, or the broker refuses the target.
        """
        with self._lock:
            self._ensure_link()

    def _ensure_link(self) -> tuple[Amqp1Connection, Link]:
        if self._connection is not None:
            try:
                # The broker may have ended it meanwhile, which is heard of by reading alone.
                self._connection.exchange(0, self._link)
                return self._connection, self._link
            except Amqp1Error:
                self._drop()
        connection = connect(self._parsed)
        try:
            link = connection.make_sender()
            if self._address:
                link.target.address = self._address
            for name in self._capabilities:
                self._add_capability(link, name)
            self._link = connection.open_link(link, receives=False)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection, link

    def _add_capability(self, link: Link, name: str) -> None:
        from proton import symbol

        link.target.capabilities.put_symbol(symbol(name))

    def _drop(self) -> None:
        connection, self._connection, self._link = self._connection, None, None
        if connection is not None:
            connection.close()

    def send(self, messages: Mapping[int, OutgoingMessage]) -> SendResult:
        """Send messages, and wait for the outcome of each."""
        failed: dict[int, str] = {}
        parts = [messages] if messages else []
        with self._lock:
            while parts:
                part = parts.pop()
                unsettled: dict[int, OutgoingMessage] = {}
                try:
                    self._send_part(part, unsettled, failed)
                except Amqp1Error as error:
                    self._drop()
                    if error.condition not in _MESSAGE_CONDITIONS:
                        left = [*unsettled, *(number for one in parts for number in one)]
                        return SendResult({**failed, **dict.fromkeys(left, str(error))}, error)
                    if len(unsettled) == 1:
                        failed[next(iter(unsettled))] = _reject(str(error), error.condition)
                    else:
                        # One of them has ended the link, and nobody says which.
                        items = list(unsettled.items())
                        half = (len(items) + 1) // 2
                        parts += [dict(items[half:]), dict(items[:half])]
                except BaseException:
                    self._drop()
                    raise
        return SendResult(failed, None)

    def _send_part(
        self,
        part: Mapping[int, OutgoingMessage],
        unsettled: dict[int, OutgoingMessage],
        failed: dict[int, str],
    ) -> None:
        """Send messages; note those that fail, and those whose fate is not known.

        Raises:
            Amqp1Error: the connection or the link has ended.
        """
        unsettled.update(part)
        connection, link = self._ensure_link()
        limit = link.remote_max_message_size
        waiting = list(reversed(list(part.items())))
        on_way: dict[Any, int] = {}
        while waiting or on_way:
            while waiting and link.credit > 0:
                number, message = waiting.pop()
                if limit and len(message.encoded) > limit:
                    text = f"is {len(message.encoded)} bytes; the broker takes {limit}"
                    failed[number] = Rejection(text, Reason.TOO_LARGE)
                    del unsettled[number]
                    continue
                delivery = link.delivery(link.delivery_tag())
                link.stream(message.encoded)
                link.advance()
                on_way[delivery] = number
            if not on_way and waiting:
                connection.wait(lambda: link.credit > 0, _OUTCOME_TIMEOUT_S, link)
                continue
            connection.wait(
                lambda: any(map(_has_outcome, on_way)),
                _OUTCOME_TIMEOUT_S,
                link,
            )
            for delivery in [one for one in on_way if _has_outcome(one)]:
                number = on_way.pop(delivery)
                outcome = _read_outcome(delivery, part[number])
                delivery.settle()
                if outcome is not None:
                    failed[number] = outcome
                del unsettled[number]


def _has_outcome(delivery: Any) -> bool:
    from proton import Delivery

    # The state `received` is none of the last ones.
    return bool(delivery.settled or delivery.remote_state not in (0, Delivery.RECEIVED))


def _read_outcome(delivery: Any, message: OutgoingMessage) -> str | None:
    """Return why a delivery has failed, or None; a rejection where the message is to blame."""
    from proton import Delivery

    state = delivery.remote_state
    if state in (0, Delivery.ACCEPTED):
        return None
    if state == Delivery.RELEASED:
        text = "the broker releases the message: nobody takes it there"
        return Rejection(text, Reason.REFUSED) if message.has_address else text
    if state == Delivery.REJECTED:
        condition = delivery.remote.condition
        if condition is None:
            return "the broker rejects the message"
        text = f"the broker rejects the message: {condition.name}: {condition.description}"
        return _reject(text, condition.name) if condition.name in _MESSAGE_CONDITIONS else text
    return "the broker has not delivered the message"


def _reject(text: str, condition: str) -> Rejection:
    reason = Reason.TOO_LARGE if condition == _TOO_LARGE else Reason.REFUSED
    return Rejection(text, reason)
