"""A Kafka input as it is built; opened, it is a `KafkaSource`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.input.input_context import InputContext


@dataclass(frozen=True)
class KafkaInput:
    """An input before it is opened.

    Attributes:
        source: what its fields say.
        token: reads the token of OAUTHBEARER from its cache; None when it is not in one.
    """

    source: KafkaSource
    token: Callable[[Execution], str] | None = None

    def open(self, context: InputContext) -> KafkaSource:
        """Check that the topics can be read, and choose where to begin; see `OpenableInput`."""
        return self.resolve_source().open(context)

    def probe(self) -> str:
        """Check that the topics could be read; see `SupportsProbe`."""
        return self.resolve_source().probe()

    def resolve_source(self) -> KafkaSource:
        """Return the source with its token.

        Raises:
            StreamerError: its cache has none.
        """
        if self.token is None:
            return self.source
        try:
            token = self.token(Execution(time.time_ns))
        except StreamerError as error:
            raise StreamerError(
                f"input {self.source.name}: the token of OAUTHBEARER cannot be had: {error}; "
                "put it into sasl.token_cache under sasl.token_key"
            ) from None
        connection = self.source.connection.with_token(token)
        return replace(self.source, connection=connection)
