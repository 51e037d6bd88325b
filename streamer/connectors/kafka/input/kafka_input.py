"""A Kafka input as it is built; opened, it is a `KafkaSource`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext

if TYPE_CHECKING:
    from streamer.connectors.kafka.input.driver_source import DriverKafkaInput


@dataclass(frozen=True)
class KafkaInput:
    """An input before it is opened.

    Attributes:
        source: what its fields say.
    """

    source: KafkaSource

    def open(self, context: InputContext) -> KafkaSource:
        """Check that the topics can be read, and choose where to begin; see `OpenableInput`."""
        self.check_token()
        return self.source.open(context)

    def probe(self) -> str:
        """Check that the topics could be read; see `SupportsProbe`."""
        self.check_token()
        return self.source.probe()

    def for_driver(self) -> DriverKafkaInput:
        """Return the input for another one that reads it on the driver; see `DriverReadable`."""
        from streamer.connectors.kafka.input.driver_source import DriverKafkaInput

        return DriverKafkaInput(self)

    def check_token(self) -> None:
        """Check that a token of OAUTHBEARER can be had, if one is needed.

        Raises:
            StreamerError: it cannot.
        """
        try:
            self.source.connection.check_token()
        except StreamerError as error:
            raise StreamerError(f"input {self.source.name}: {error}") from None
