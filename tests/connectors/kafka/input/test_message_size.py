"""How large messages are: what a consumer says of ends that move while it reads."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from streamer.connectors.kafka.input.message_size import _read_mean_size


class Message:
    def __init__(self, partition: int, value: bytes | None) -> None:
        self._partition, self._value = partition, value

    def topic(self) -> str:
        return "cars"

    def partition(self) -> int:
        return self._partition

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._value is None else None

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes:
        return b"k"

    def headers(self) -> list[tuple[str, bytes]]:
        return [("h", b"12")]


class Consumer:
    """Gives what it is told to, one call after the other, and refuses what librdkafka refuses."""

    def __init__(self, *answers: list[Message]) -> None:
        self._answers = list(answers)

    def consume(self, number: int, timeout: float) -> list[Any]:
        assert 0 < number <= 1_000_000
        return self._answers.pop(0)


def test_an_end_that_is_reached_twice_is_one_end() -> None:
    end = Message(0, None)
    # Somebody writes into partition 0 while it is read; of 1 nothing has come yet.
    consumer = Consumer(
        [Message(0, b"1234"), end, Message(0, b"1234"), end, end],
        [Message(1, b"12345678"), Message(1, None)],
    )
    # Value, key, and the header's name and value.
    assert _read_mean_size(consumer, {("cars", 0), ("cars", 1)}) == (8 + 8 + 12) // 3


def test_of_nothing_there_is_no_mean() -> None:
    assert _read_mean_size(Consumer([Message(0, None)]), {("cars", 0)}) is None
