"""Receiving: the broker sends as many messages as it has credit for; each has an outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from streamer.connectors.amqp_1.connection import Amqp1Connection
from streamer.connectors.amqp_1.messages import make_record
from streamer.connectors.spool.blocks import Record

_POLL_INTERVAL_S: Final = 0.25
_SECTION_START: Final = b"\0"
_MAX_MESSAGE_BYTES: Final = 256 << 20


@dataclass
class ReceivedMessages:
    """Messages that have come together.

    Attributes:
        records: those that can be decoded.
        errors: why others cannot.
        deliveries: all of them, each with the state in which it ends.
    """

    records: list[Record] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    deliveries: list[tuple[Any, int]] = field(default_factory=list)


class MessageReceiver:
    """Receives messages from an address."""

    def __init__(
        self, connection: Amqp1Connection, address: str, credit: int, reads_header: bool
    ) -> None:
        """Request messages.

        Args:
            connection: the connection, which the caller closes.
            address: the source.
            credit: maximum number of messages that are not settled.
            reads_header: whether the header becomes metadata too.

        Raises:
            Amqp1Error: the broker refuses the address, or the connection is lost.
        """
        self._connection = connection
        self._reads_header = reads_header
        link = connection.make_receiver()
        link.source.address = address
        link.max_message_size = _MAX_MESSAGE_BYTES
        self._link = connection.open_link(link, receives=True)
        self._link.flow(credit)

    def receive(self) -> ReceivedMessages:
        """Return messages that are here; wait a moment where there are none.

        Raises:
            Amqp1Error: the connection or the link has ended.
        """
        self._connection.exchange(0 if self._has_message() else _POLL_INTERVAL_S, self._link)
        received = ReceivedMessages()
        while self._has_message():
            self._take(received)
        return received

    def _has_message(self) -> bool:
        delivery = self._link.current
        return delivery is not None and delivery.readable and not delivery.partial

    def _take(self, received: ReceivedMessages) -> None:
        from proton import Delivery, Message, ProtonException

        delivery = self._link.current
        encoded = self._link.recv(delivery.pending)
        self._link.advance()
        if delivery.aborted:
            received.deliveries.append((delivery, 0))
            return
        message = Message()
        try:
            # Proton takes any bytes for a message without sections; a section begins with a zero.
            if not (encoded or b"").startswith(_SECTION_START):
                raise ValueError("it has no section of AMQP")
            message.decode(encoded)
            record = make_record(message, reads_header=self._reads_header)
        except (ProtonException, ValueError, TypeError, OverflowError) as error:
            received.errors.append(str(error) or type(error).__name__)
            received.deliveries.append((delivery, Delivery.REJECTED))
            return
        received.records.append(record)
        received.deliveries.append((delivery, Delivery.ACCEPTED))

    def acknowledge(self, received: ReceivedMessages) -> None:
        """Accept the messages that are safe, reject the others, and ask for as many more."""
        for delivery, state in received.deliveries:
            if state:
                delivery.update(state)
            delivery.settle()
        if received.deliveries:
            self._link.flow(len(received.deliveries))
