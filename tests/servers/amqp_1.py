"""A stand-in for a broker of AMQP 1.0, by Proton itself: it settles messages as their text says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers import lasting_port


@dataclass
class StandIn:
    """A broker that keeps no message.

    Attributes:
        url: its address.
        encoded: bytes of the messages that each receiver gets, once.
        taken: address and body of those that it has accepted.
        outcomes: of the messages that a receiver got, in their order.
    """

    url: str
    encoded: Sequence[bytes] = ()
    taken: list[tuple[str | None, Any]] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)


@contextmanager
def amqp_stand_in(encoded: Sequence[bytes] = (), max_bytes: int = 0) -> Iterator[StandIn]:
    """Run one.

    Args:
        encoded: bytes of messages for receivers.
        max_bytes: the size that senders are told; 0 for none.
    """
    from proton.reactor import ApplicationEvent, Container, EventInjector

    broker = StandIn(f"127.0.0.1:{lasting_port()}", encoded)
    injector, up = EventInjector(), threading.Event()
    handler = _make_handler(broker, injector, up, max_bytes)
    thread = threading.Thread(target=Container(handler).run, daemon=True)
    thread.start()
    assert up.wait(30)
    try:
        yield broker
    finally:
        injector.trigger(ApplicationEvent("end"))
        thread.join(30)


def _make_handler(broker: StandIn, injector: Any, up: threading.Event, max_bytes: int) -> Any:
    from proton import Condition, Delivery
    from proton.handlers import MessagingHandler

    class Handler(MessagingHandler):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(prefetch=10, auto_accept=False, auto_settle=True)
            self.acceptor: Any = None
            self.container: Any = None

        def on_start(self, event: Any) -> None:
            self.container = event.container
            self.acceptor = event.container.listen(broker.url)
            event.container.selectable(injector)
            up.set()

        def on_end(self, event: Any) -> None:
            self.acceptor.close()
            self.container.stop()

        def on_link_opening(self, event: Any) -> None:
            link = event.link
            link.source.copy(link.remote_source)
            link.target.copy(link.remote_target)
            if link.is_receiver and max_bytes:
                link.max_message_size = max_bytes

        def on_sendable(self, event: Any) -> None:
            for one in broker.encoded:
                event.sender.delivery(event.sender.delivery_tag())
                event.sender.stream(one)
                event.sender.advance()
            broker.encoded = ()

        def on_accepted(self, event: Any) -> None:
            broker.outcomes.append("accepted")

        def on_rejected(self, event: Any) -> None:
            broker.outcomes.append("rejected")

        def on_message(self, event: Any) -> None:
            body, delivery = bytes(event.message.body), event.delivery
            if body == b"release":
                self.release(delivery, delivered=False)
                return
            if body.startswith(b"amqp:"):
                delivery.local.condition = Condition(body.decode(), "for what it is")
                self.settle(delivery, Delivery.REJECTED)
                return
            if body.startswith(b"end:"):
                event.link.condition = Condition("amqp:invalid-field", "bad section")
                event.link.close()
                return
            broker.taken.append((event.message.address, body))
            self.accept(delivery)

    return Handler()
