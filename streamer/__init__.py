"""streamer: the configurations of Benthos / Redpanda Connect, run on Apache Spark.

`streamer.load(path)` gives a stream, which a program or a notebook can check, test, simulate and
run. The names of `__all__` are public, and stable within a major version of `API_VERSION`. They are
imported when they are first used; importing `streamer` imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from streamer.core.errors import ConfigError, Lint, StreamerError
    from streamer.service.library.checks import Explanation, LintFindings, TestReport
    from streamer.service.library.errors import (
        StreamFailedError,
        StreamTimeoutError,
        UnitTestsFailedError,
    )
    from streamer.service.library.handle import StreamHandle
    from streamer.service.library.loading import load, loads, simulate, stop_spark
    from streamer.service.library.status import RunState, StreamStatus, WindowRow, WindowTable
    from streamer.service.library.stream import Stream

__version__ = "0.2.0"

API_VERSION: Final = "1.0"
"""The version of these names; see the rules in the page `library` of the documentation."""

__all__ = [
    "API_VERSION",
    "ConfigError",
    "Explanation",
    "Lint",
    "LintFindings",
    "RunState",
    "Stream",
    "StreamFailedError",
    "StreamHandle",
    "StreamStatus",
    "StreamTimeoutError",
    "StreamerError",
    "TestReport",
    "UnitTestsFailedError",
    "WindowRow",
    "WindowTable",
    "load",
    "loads",
    "simulate",
    "stop_spark",
]

_NAMES_BY_MODULE: Final = {
    "streamer.core.errors": "ConfigError Lint StreamerError",
    "streamer.service.library.checks": "Explanation LintFindings TestReport",
    "streamer.service.library.errors": "StreamFailedError StreamTimeoutError UnitTestsFailedError",
    "streamer.service.library.handle": "StreamHandle",
    "streamer.service.library.loading": "load loads simulate stop_spark",
    "streamer.service.library.status": "RunState StreamStatus WindowRow WindowTable",
    "streamer.service.library.stream": "Stream",
}
_MODULES: Final = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
