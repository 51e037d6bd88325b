"""What libraries report by `logging`, and what malformed requests make of the log."""

from __future__ import annotations

import io
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from streamer.cli.log_output import LogConfig, Logger
from streamer.cli.log_output.python_logging import PythonLogHandler, take_python_logs
from tests.service.serving import serving

Line = tuple[str, str, Mapping[str, Any]]
BROKEN = [
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\x00\nlevel=error msg=forged\r\n\r\n",
    b"GET / HTTP/9.9\x1b[31m\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    b"\x16\x03\x01\x02\x00 is no HTTP\r\n\r\n",
]


@contextmanager
def taken(stream: io.StringIO) -> Iterator[None]:
    logger = Logger(LogConfig(add_timestamp=False), stream)
    before = logging.getLogger().handlers[:]
    take_python_logs(lambda level, text, fields: logger.emit(level, text, fields, 0))
    try:
        yield
    finally:
        logging.getLogger().handlers[:] = before


def test_malformed_requests_are_one_line_of_logfmt_of_a_kind_and_minute(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    with taken(stream), serving() as served:
        at = urlsplit(served.url)
        for request in BROKEN * 4:
            with socket.create_connection((at.hostname or "", at.port or 0), 10) as client:
                client.sendall(request)
                assert client.recv(100).startswith(b"HTTP/1.")
        assert served.get("/ping")[0] == 200
        until = time.monotonic() + 10
        while not stream.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    lines = stream.getvalue().splitlines()
    # Bad requests are of a few classes, each of which is a kind.
    assert 1 <= len(lines) <= len(BROKEN)
    for line in lines:
        assert line.startswith('level=warning msg="Error handling request from 127.0.0.1: Bad')
        assert line.endswith(" logger=aiohttp.server") and line.isprintable()
    assert not any(line.startswith("level=error") for line in lines)
    assert "Traceback" not in capfd.readouterr().err


def handler() -> tuple[PythonLogHandler, list[Line], list[float]]:
    lines: list[Line] = []
    now = [0.0]
    made = PythonLogHandler(lambda *line: lines.append(line), lambda: now[0])
    return made, lines, now


def record(text: str, level: int = logging.ERROR, error: BaseException | None = None) -> Any:
    info = None if error is None else (type(error), error, None)
    return logging.LogRecord("a.b", level, "f.py", 1, text, None, info)


def test_a_kind_is_written_once_a_minute_with_the_number_that_was_left_out() -> None:
    made, lines, now = handler()
    for second in range(0, 130, 10):
        now[0] = second
        made.handle(record("no sockets\nsocket: <x>", error=OSError("too many\nfiles")))
        made.handle(record("other", logging.WARNING))
    first = [line for line in lines if line[1] != "other"]
    assert first == [
        ("ERROR", "no sockets socket: <x>: OSError: too many", {"logger": "a.b"}),
        ("ERROR", "no sockets socket: <x>: OSError: too many", {"logger": "a.b", "left_out": 5}),
        ("ERROR", "no sockets socket: <x>: OSError: too many", {"logger": "a.b", "left_out": 5}),
    ]
    assert [line[0] for line in lines if line[1] == "other"] == ["WARN"] * 3


def test_a_text_is_cut_and_kinds_are_bounded() -> None:
    made, lines, _ = handler()
    for number in range(3000):
        made.handle(record(f"kind {number} " + "x" * 1000))
    assert len(lines) == 3000 and len(made._counter._kinds) <= 1000
    assert {len(text) for _, text, _ in lines} == {500}


def test_the_log_that_is_taken_last_is_the_only_one() -> None:
    first, second = io.StringIO(), io.StringIO()
    with taken(first), taken(second):
        logging.getLogger("lib").warning("to %s", "whom")
    assert not first.getvalue()
    assert second.getvalue() == 'level=warning msg="to whom" logger=lib\n'


def test_what_java_has_called_in_vain_is_for_those_who_look_for_faults() -> None:
    """The stream says itself why its micro-batch has failed."""
    found: list[str] = []
    handler = PythonLogHandler(lambda level, text, fields: found.append(level))
    for name in ("py4j.clientserver", "asyncio"):
        handler.emit(logging.makeLogRecord({"name": name, "levelno": logging.ERROR, "msg": "no"}))
    assert found == ["DEBUG", "ERROR"]
