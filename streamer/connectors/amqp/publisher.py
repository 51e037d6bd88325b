"""Publishing: a batch is on its way at once, and the broker confirms each message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.amqp.connection import (
    Channel,
    SharedConnection,
    describe_error,
    value_errors,
)
from streamer.sdk.output.rejection import Reason, Rejection

_EXCHANGE_TIMEOUT_S: Final = 10.0


class OutgoingMessage(NamedTuple):
    """A message as it is published.

    Attributes:
        exchange: the exchange; empty for the broker's default.
        key: the routing key.
        properties: a `pamqp.commands.Basic.Properties`.
        body: the payload.
    """

    exchange: str
    key: str
    properties: Any
    body: bytes


class PublishResult(NamedTuple):
    """The outcome of publishing.

    Attributes:
        failed: why some messages have failed, by their number.
        error: what ended the work; None where nothing did.
    """

    failed: dict[int, str]
    error: BaseException | None


class ExchangeSettings(NamedTuple):
    """Declaration of exchanges.

    Attributes:
        declares: whether they are at all.
        kind: `direct`, `topic` and so on.
        durable: whether they outlive the broker.
        arguments: further arguments.
    """

    declares: bool
    kind: str
    durable: bool
    arguments: dict[str, Any]


class Publisher:
    """Publishes messages over a shared connection."""

    def __init__(
        self,
        shared: SharedConnection,
        exchange: ExchangeSettings,
        *,
        is_own: bool,
        mandatory: bool,
        immediate: bool,
    ) -> None:
        """Set up; nothing is connected yet.

        Args:
            shared: the connection.
            exchange: how exchanges are declared.
            is_own: whether the exchange or the routing key depend on the message, which is to
                blame then for what is wrong with them.
            mandatory: whether a message that no queue takes comes back.
            immediate: whether a message that no consumer takes at once comes back.
        """
        self._shared = shared
        self._exchange = exchange
        self._is_own = is_own
        self._flags = {"mandatory": mandatory, "immediate": immediate}

    async def publish(self, outgoing: Mapping[int, OutgoingMessage]) -> PublishResult:
        """Publish messages, and wait until the broker has confirmed them.

        Raises:
            Exception: nothing was published: the connection is of no use any more, or the exchange
                that all messages have.
        """
        failed: dict[int, str] = {}
        missing = await self._find_missing_exchanges({one.exchange for one in outgoing.values()})
        ready: dict[int, OutgoingMessage] = {}
        for number, message in outgoing.items():
            if message.exchange in missing:
                failed[number] = Rejection(missing[message.exchange], Reason.REFUSED)
            else:
                ready[number] = message
        ending: BaseException | None = None
        for part in self._split_by_id(ready):
            if ending is not None:
                failed |= dict.fromkeys(part, describe_error(ending))
                continue
            for number, error in (await self._publish_part(part)).items():
                text = self._failure_text(error)
                if text is None:
                    text, ending = describe_error(error), error
                failed[number] = text
        return PublishResult(failed, ending)

    def _split_by_id(
        self, messages: Mapping[int, OutgoingMessage]
    ) -> Sequence[Mapping[int, OutgoingMessage]]:
        """Part messages with the same id: by it, the client tells which one has come back."""
        if not any(self._flags.values()):
            return [messages] if messages else []
        parts: list[dict[int, OutgoingMessage]] = []
        seen: dict[str, int] = {}
        for number, message in messages.items():
            key = message.properties.message_id
            place = seen.get(key, 0) if key else 0
            if key:
                seen[key] = place + 1
            if place == len(parts):
                parts.append({})
            parts[place][number] = message
        return parts

    async def _publish_part(
        self, messages: Mapping[int, OutgoingMessage]
    ) -> dict[int, BaseException]:
        """Publish messages together; return the errors of those that have failed."""
        from aiormq.exceptions import ChannelPreconditionFailed

        failed = await self._publish_at_once(messages)
        refused = [
            number
            for number, error in failed.items()
            if isinstance(error, ChannelPreconditionFailed)
        ]
        if len(refused) > 1:
            # The broker closes the channel for one of them, and does not say which.
            for number in refused:
                del failed[number]
                failed |= await self._publish_at_once({number: messages[number]})
        return failed

    async def _publish_at_once(
        self, messages: Mapping[int, OutgoingMessage]
    ) -> dict[int, BaseException]:
        channel = await self._shared.take_channel()
        try:
            results = await asyncio.gather(
                *(self._publish_one(channel, message) for message in messages.values()),
                return_exceptions=True,
            )
        finally:
            self._shared.release(channel)
        return {
            number: result
            for number, result in zip(messages, results, strict=True)
            if isinstance(result, BaseException)
        }

    async def _publish_one(self, channel: Channel, message: OutgoingMessage) -> Any:
        return await channel.basic_publish(
            message.body,
            exchange=message.exchange,
            routing_key=message.key,
            properties=message.properties,
            wait=False,
            **self._flags,
        )

    async def _find_missing_exchanges(self, names: set[str]) -> dict[str, str]:
        """Declare exchanges, or look for them where messages name them.

        Returns:
            Why some cannot be used, by name.

        Raises:
            Exception: the one that all messages have cannot be used, or the connection is lost.
        """
        from aiormq.exceptions import AMQPChannelError

        if not (self._exchange.declares or self._is_own):
            return {}
        missing: dict[str, str] = {}
        for name in sorted(names):
            if not name or name in self._shared.known_exchanges:
                continue
            channel = await self._shared.take_channel()
            try:
                await self._declare_exchange(channel, name)
                self._shared.known_exchanges.add(name)
            except AMQPChannelError as error:
                if not self._is_own:
                    raise
                missing[name] = describe_error(error)
            finally:
                self._shared.release(channel)
        return missing

    async def _declare_exchange(self, channel: Channel, name: str) -> None:
        settings = self._exchange
        await channel.exchange_declare(
            name,
            exchange_type=settings.kind,
            passive=not settings.declares,
            durable=settings.durable,
            arguments=settings.arguments or None,
            timeout=_EXCHANGE_TIMEOUT_S,
        )

    def _failure_text(self, error: BaseException) -> str | None:
        """Return why a message was not published, None where the connection is of no use any more.

        It is a rejection where that is the message's own fault.
        """
        from aiormq.exceptions import ChannelPreconditionFailed, DeliveryError, PublishError

        if isinstance(error, PublishError):
            text = f"the broker returns the message: {error.frame.reply_text}"
            return Rejection(text, Reason.REFUSED) if self._is_own else text
        if isinstance(error, DeliveryError):
            return "the broker does not take the message now (basic.nack)"
        if isinstance(error, ChannelPreconditionFailed):
            return Rejection(describe_error(error), Reason.REFUSED)
        if isinstance(error, value_errors()):
            return Rejection(f"no message can be made of it: {error}", Reason.INVALID)
        return None
