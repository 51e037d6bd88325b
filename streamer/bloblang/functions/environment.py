"""Functions that look outside of the message: the clock, the environment, the host, files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.environment import MappingEnvironment, read_file
from streamer.core.execution import Execution
from streamer.core.timestamps import format_rfc3339

_CATEGORY = "Environment"


@declare(
    "now",
    _CATEGORY,
    examples=(Example("root.ends = now().slice(-1)", "{}", '{"ends":"Z"}'),),
    needs=("ex",),
    uses=("now",),
)
def now(ex: Execution) -> str:
    """The time as RFC 3339 in UTC, with nanoseconds."""
    return format_rfc3339(ex.now())


def _declare_unix_time(name: str, unit: str, ns: int, example: Example) -> Any:
    @declare(
        name,
        _CATEGORY,
        examples=(example,),
        needs=("ex",),
        uses=("now",),
        summary=f"Unix time in {unit}.",
    )
    def unix_time(ex: Execution) -> int:
        return ex.now() // ns

    return unix_time


timestamp_unix = _declare_unix_time(
    *("timestamp_unix", "seconds", 1_000_000_000),
    Example("root = timestamp_unix() > 1600000000", "{}", "true"),
)
timestamp_unix_milli = _declare_unix_time(
    *("timestamp_unix_milli", "milliseconds", 1_000_000),
    Example("root = timestamp_unix_milli() > 1600000000000", "{}", "true"),
)
timestamp_unix_micro = _declare_unix_time(
    *("timestamp_unix_micro", "microseconds", 1_000),
    Example("root = timestamp_unix_micro() > 1600000000000000", "{}", "true"),
)
timestamp_unix_nano = _declare_unix_time(
    *("timestamp_unix_nano", "nanoseconds", 1),
    Example("root.recent = timestamp_unix_nano() > 1600000000000000000", "{}", '{"recent":true}'),
)


@declare(
    "env",
    _CATEGORY,
    Param("name", "string"),
    Param("no_cache", "bool", default=False),
    examples=(Example('root = env("STREAMER_EXAMPLE_UNSET").or("none")', "{}", "none"),),
    summary=(
        "An environment variable, null if it is not set. It is read once, or with `no_cache` for "
        "each message."
    ),
    binds=True,
    impure=True,
    takes_environment=True,
)
def env(environment: MappingEnvironment, name: str, no_cache: bool) -> Callable[[], str | None]:
    """An environment variable, null when it is not set."""
    if no_cache:
        return lambda: os.environ.get(name)
    value = environment.read_variable(name)
    return lambda: value


@declare(
    "hostname",
    _CATEGORY,
    examples=(Example("root = hostname().length() > 0", "{}", "true"),),
    impure=True,
)
def hostname() -> str:
    """The name of the machine."""
    return socket.gethostname()


_FILE_EXAMPLE = "open no/such: no such file or directory"


@declare(
    "file",
    _CATEGORY,
    Param("path", "string"),
    Param("no_cache", "bool", default=False),
    examples=(
        Example('root = file(path: "no/such", no_cache: true).catch("none")', "{}", "none"),
        Example("root = file(this.a).catch(e -> e)", '{"a":"no/such"}', _FILE_EXAMPLE),
    ),
    summary=(
        "The bytes of a file; its path is relative to the working directory. The file is read "
        "once, and a change of it is not seen until the next start. With `no_cache` it is read, "
        "and parsed by what follows, anew for each message; a table that is read again when its "
        "file changes is a [lookup table](lookup-tables.md)."
    ),
    binds=True,
    impure=True,
    takes_environment=True,
)
def file(environment: MappingEnvironment, path: str, no_cache: bool) -> Callable[[], bytes]:
    """The bytes of a file; its path is relative to the working directory."""
    if no_cache:
        return lambda: read_file(path)
    content = environment.read_file(path)
    return lambda: content


@declare(
    "file_rel",
    _CATEGORY,
    Param("path", "string"),
    Param("no_cache", "bool", default=False),
    examples=(
        Example('root = file_rel(path: "no/such", no_cache: true).catch("none")', "{}", "none"),
    ),
    summary=(
        "The bytes of a file; its path is relative to the directory of the mapping's file. It is "
        "read once, or with `no_cache` for each message; see `file`."
    ),
    binds=True,
    impure=True,
    takes_environment=True,
)
def file_rel(environment: MappingEnvironment, path: str, no_cache: bool) -> Callable[[], bytes]:
    """The bytes of a file; its path is relative to the directory of the mapping's file."""
    return file(environment, environment.resolve_path(path), no_cache)
