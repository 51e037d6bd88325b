"""Where the windows of a stream under test go, and what each kind of sink promises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.servers.http import Asked, Reply, http_server
from tests.servers.kafka import Broker

_TOPIC, _PARTITIONS = "windows", 3
_PATIENCE = 60.0
"""Seconds for which a broker may refuse to say where its partitions end."""


class Sink(Protocol):
    """A sink.

    Attributes:
        repeats: whether the same window may come again after a fault.
    """

    repeats: bool

    def config(self) -> str:
        """Return the stream's `output`."""

    def size(self) -> int:
        """Return a number that grows when readers see more."""

    def written(self) -> int:
        """Return a number that grows when more is there, seen by readers or not yet."""

    def windows(self) -> list[bytes]:
        """Return what readers see: a line for a window."""


Sinks = Callable[[Path, Broker], AbstractContextManager[Sink]]


class FileSink:
    """A file: exact."""

    repeats = False

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def config(self) -> str:
        return f'{{file: {{path: "{self.path}", codec: lines}}}}'

    def size(self) -> int:
        return self.path.stat().st_size

    written = size

    def windows(self) -> list[bytes]:
        return whole_lines(self.path)


@contextmanager
def file_sink(directory: Path, broker: Broker) -> Iterator[Sink]:
    """Give a file."""
    yield FileSink(directory / "out.jsonl")


class KafkaSink:
    """A topic, read as `read_committed`: exact with transactions."""

    def __init__(self, broker: Broker, transactional: bool) -> None:
        self.repeats = not transactional
        self._broker = broker
        self._kafka = broker.client()
        self._kafka.create(_TOPIC, _PARTITIONS)

    def config(self) -> str:
        fields = [
            f'seed_brokers: ["{self._broker.address()}"]',
            f"topic: {_TOPIC}",
            f"transactional: {str(not self.repeats).lower()}",
            # Shorter than a broker is stopped for.
            "timeout: 5s",
        ]
        return f"{{kafka_franz: {{{', '.join(fields)}}}}}"

    def size(self) -> int:
        return self._ends("read_committed")

    def written(self) -> int:
        return self._ends("read_uncommitted")

    def windows(self) -> list[bytes]:
        return [one.value or b"" for one in self._kafka.consume(_TOPIC)]

    def _ends(self, isolation: str) -> int:
        # Not by an admin client, which may die when its broker does.
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(_TOPIC, partition) for partition in range(_PARTITIONS)]
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                reader = self._reader(isolation)
                return sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places)
            except KafkaException:
                # A broker that was stopped for a while leads its partitions a moment later.
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def _reader(self, isolation: str) -> Any:
        from confluent_kafka import Consumer

        readers: dict[str, Any] = self.__dict__.setdefault("_readers", {})
        if isolation not in readers:
            settings = {"bootstrap.servers": self._broker.address(), "group.id": "looks"}
            settings |= {"isolation.level": isolation, "log_level": 0}
            readers[isolation] = Consumer(settings)
        return readers[isolation]


@contextmanager
def transactional_sink(directory: Path, broker: Broker) -> Iterator[Sink]:
    """Give a topic that is written in transactions."""
    yield KafkaSink(broker, transactional=True)


@contextmanager
def plain_sink(directory: Path, broker: Broker) -> Iterator[Sink]:
    """Give a topic that is written without transactions."""
    yield KafkaSink(broker, transactional=False)


class HttpSink:
    """A server that can refuse, or be slow: what it took is there, maybe more than once.

    Attributes:
        refuses: whether it says 503 instead of taking something.
        refused: how often it did.
        pause: seconds after which it answers.
        fields: further fields of the output.
    """

    repeats = True

    def __init__(self) -> None:
        self.refuses, self.refused = False, 0
        self.pause = 0.0
        self.url, self.fields = "", ""
        self._lock = threading.Lock()
        self._taken: list[bytes] = []

    def answer(self, asked: Asked) -> Reply:
        time.sleep(self.pause)
        with self._lock:
            if self.refuses:
                self.refused += 1
                return Reply(503)
            self._taken.append(asked.body)
            return Reply()

    def config(self) -> str:
        retries = "retry_period: 100ms, max_retry_backoff: 500ms"
        return f'{{http_client: {{url: "{self.url}/windows", {retries}{self.fields}}}}}'

    def size(self) -> int:
        with self._lock:
            return len(self._taken)

    written = size

    def windows(self) -> list[bytes]:
        with self._lock:
            return list(self._taken)


@contextmanager
def http_sink(directory: Path, broker: Broker) -> Iterator[Sink]:
    """Give a server that speaks HTTP."""
    sink = HttpSink()
    with http_server(sink.answer) as server:
        sink.url = server.url
        yield sink


def whole_lines(path: Path) -> list[bytes]:
    """Read whole lines; of one that a process printed when it was killed there is only a part."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        start = line.rfind(b'{"end"') if b'{"end"' in line else 0
        if line:
            found.append(line[start:])
    return found
