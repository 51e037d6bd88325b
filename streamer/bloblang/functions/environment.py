"""Functions that look outside of the message: the clock, the environment, the host, files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from streamer.bloblang.declare import Param, declare
from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.message import Execution
from streamer.timestamps import format_rfc3339

_CATEGORY = "Environment"


@declare(
    "now",
    _CATEGORY,
    needs=("ex",),
    uses=("now",),
)
def now(ex: Execution) -> str:
    """The time as RFC 3339 in UTC, with nanoseconds."""
    return format_rfc3339(ex.now())


@declare("timestamp_unix", _CATEGORY, needs=("ex",), uses=("now",))
def timestamp_unix(ex: Execution) -> int:
    """Unix time in seconds."""
    return ex.now() // 1_000_000_000


@declare("timestamp_unix_milli", _CATEGORY, needs=("ex",), uses=("now",))
def timestamp_unix_milli(ex: Execution) -> int:
    """Unix time in milliseconds."""
    return ex.now() // 1_000_000


@declare("timestamp_unix_micro", _CATEGORY, needs=("ex",), uses=("now",))
def timestamp_unix_micro(ex: Execution) -> int:
    """Unix time in microseconds."""
    return ex.now() // 1_000


@declare("timestamp_unix_nano", _CATEGORY, needs=("ex",), uses=("now",))
def timestamp_unix_nano(ex: Execution) -> int:
    """Unix time in nanoseconds."""
    return ex.now()


@declare(
    "env",
    _CATEGORY,
    Param("name", "string"),
    Param("no_cache", "bool", default=False),
    uses=("impure",),
    binds=True,
)
def env(name: str, no_cache: bool) -> Callable[[], str | None]:
    """An environment variable, null when it is not set."""
    if no_cache:
        return lambda: os.environ.get(name)
    value = os.environ.get(name)
    return lambda: value


@declare("hostname", _CATEGORY, uses=("impure",))
def hostname() -> str:
    """The name of the machine."""
    return socket.gethostname()


@declare(
    "file",
    _CATEGORY,
    Param("path", "string"),
    Param("no_cache", "bool", default=False),
    uses=("impure",),
    binds=True,
)
def file(path: str, no_cache: bool) -> Callable[[], bytes]:
    """The bytes of a file; its path is taken from where the program runs."""

    def read() -> bytes:
        try:
            with open(path, "rb") as source:
                return source.read()
        except OSError as e:
            raise QueryError(f"open {path}: {e.strerror}") from None

    if no_cache:
        return read
    try:
        content = read()
    except QueryError as e:
        raise ArgumentError(str(e)) from None
    return lambda: content
