"""A start whose broker is away: it waits where it was told to, says why, and a stop ends it."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from streamer.cli.start_retry import open_with_retries
from streamer.config import parse_config
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.core.errors import StreamerError
from streamer.plan import make_plan
from streamer.service.monitoring.readiness import check_readiness
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.run.stream_run import StreamRun


class Stopping(Event):
    """Is set after so many pauses, none of which takes time."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._after = after

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        return len(self.pauses) >= self._after


def test_a_server_that_is_away_is_waited_for_and_named_once_a_minute() -> None:
    answers: list[Exception | None] = [
        KafkaError("no broker answers"),
        KafkaError("no broker"),
        *(),
    ]
    answers += [KafkaError("no broker")] * 3 + [None]
    log, seen, stopping = list[str](), list[str](), Stopping(100)
    at = iter([0.0, 1.0, 3.0, 30.0, 65.0, 66.0, 67.0, 68.0, 69.0])

    def start() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise StreamerError(f"input redpanda: {answer}") from answer

    lines: Any = lambda _, text, __: log.append(text)  # noqa: E731
    assert open_with_retries(start, stopping, lines, seen.append, lambda: next(at))
    away = "Waiting to start: input redpanda: no broker"
    assert log == [f"{away} answers", away, away]
    assert len(seen) == 5 and stopping.pauses == [1.0, 2.0, 4.0, 8.0, 10.0]


def test_what_waiting_does_not_mend_ends_the_start() -> None:
    def start() -> None:
        raise StreamerError("no topic") from KafkaError("there is no topic 't'", is_final=True)

    with pytest.raises(StreamerError, match="no topic"):
        open_with_retries(start, Stopping(100), lambda *_: None, lambda text: None)


def test_a_topic_that_a_broker_lacks_is_waited_for_once_it_was_away() -> None:
    def missing() -> KafkaError:
        error = KafkaError("there is no topic 't'", is_final=True)
        error.absent = True
        return error

    answers = [KafkaError("no broker"), missing(), missing(), None]

    def start() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise StreamerError(f"input kafka: {answer}") from answer

    seen = list[str]()
    assert open_with_retries(start, Stopping(100), lambda *_: None, seen.append)
    assert seen[1:] == ["input kafka: there is no topic 't'"] * 2
    answers[:] = [missing()]
    with pytest.raises(StreamerError, match="no topic"):
        open_with_retries(start, Stopping(100), lambda *_: None, seen.append)


def test_a_stream_whose_broker_is_away_is_opened_again_and_again_until_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.connectors.kafka.cluster.deadline._FIRST_ANSWER_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    text = f"input: {{ redpanda: {{ seed_brokers: [ '127.0.0.1:{port}' ], topics: [ t ] }} }}"
    config = parse_config(f"{text}\noutput: {{ drop: {{}} }}", env={})
    view, stopping = StreamView(config), Stopping(3)
    life = StreamRun(config, make_plan(config), str(tmp_path / "checkpoint"), lambda *_: None, view)
    try:
        assert not open_with_retries(life.open, stopping, lambda *_: None, view.set_waiting)
    finally:
        life.close()
    assert len(stopping.pauses) == 3
    ready, body = check_readiness(view)
    assert not ready
    assert body["statuses"][0]["error"].startswith("input redpanda: no broker answers at 127.0.0.1")
