"""What `streamer -c …` does around a stream: the server it starts, the signals it waits for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from streamer.cli.signal_handler import SignalHandler
from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.service.api import server
from streamer.service.api.stream_server import serve_stream
from streamer.service.monitoring.stream_view import StreamView

Lines = list[tuple[str, str]]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(view: StreamView) -> None:
        raise StreamerError("cannot listen")

    monkeypatch.setattr(server.HttpServer, "for_stream", refuse)


@pytest.fixture
def stopper() -> Iterator[SignalHandler]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield SignalHandler(lambda text: None)
    for number, handler in before:
        signal.signal(number, handler)


def run(text: str) -> Lines:
    lines: Lines = []

    def log(level: str, line: str, fields: Mapping[str, Any]) -> None:
        lines.append((level, line))

    with serve_stream(StreamView(parse_config(text, env={})), log):
        lines.append(("", "runs"))
    return lines


def test_the_server_says_where_it_listens() -> None:
    assert run("http: { address: '127.0.0.1:0' }") == [
        ("INFO", "Listening for HTTP requests"),
        ("", "runs"),
    ]


@pytest.mark.usefixtures("taken")
def test_a_server_that_is_off_takes_no_port() -> None:
    assert run("http: { enabled: false }") == [("", "runs")]


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("section", ["address: '127.0.0.1:4195'", "enabled: true"])
def test_a_server_that_was_asked_for_must_be_there(section: str) -> None:
    with pytest.raises(StreamerError, match="cannot listen"):
        run(f"http: {{ {section} }}")


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("text", ["input: { stdin: {} }", "http: { debug_endpoints: true }"])
def test_without_being_asked_for_a_server_may_be_missing(text: str) -> None:
    assert run(text) == [("WARN", "There is no HTTP server: cannot listen"), ("", "runs")]


def test_a_delay_lasts_as_long_as_it_should(stopper: SignalHandler) -> None:
    began = time.monotonic()
    assert stopper.delay(0.05, lambda: None)
    assert time.monotonic() - began >= 0.05
    assert not stopper.stop_requested.is_set()


def test_a_signal_ends_a_delay_and_not_the_program(stopper: SignalHandler) -> None:
    stopper.stop_requested.set()
    assert not stopper.delay(60, lambda: os.kill(os.getpid(), signal.SIGTERM))
