"""What the tests of one config have around them: its file, resources, environment and log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamer.config.definitions import Case
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.message import Execution


def _silent(level: str, text: str, fields: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class Surroundings:
    """One config's tests.

    Attributes:
        config: the config's file.
        resource_files: files with further resources.
        log: takes the log lines of components.
        level: the level down to which there are any.
    """

    config: str
    resource_files: tuple[str, ...] = ()
    log: LogLine = _silent
    level: str = "OFF"

    def target(self) -> str:
        """Return the config's file, for a test that needs it.

        Raises:
            StreamerError: there is none.
        """
        if not os.path.exists(self.config):
            raise StreamerError(
                f"there is no config {self.config}; tests in a file of their own are about the "
                "config of the same name beside it, or name another: `target_processors: "
                "FILE#/pipeline/processors`"
            )
        return self.config

    @property
    def directory(self) -> Path:
        """Where the files are that tests name."""
        return Path(self.config).parent

    def execution(self) -> Execution:
        """Return what processors may ask for; their clock is the real one, as in Benthos."""
        return Execution(time.time_ns, self.log)

    def environment(self, case: Case) -> Mapping[str, str]:
        """Return the variables of the process, and the case's own."""
        return {**os.environ, **(case.parsed["environment"] or {})}


@contextmanager
def environment_of(case: Case) -> Iterator[None]:
    """Set a case's variables in the process for a while: mappings may ask for them."""
    before = {name: os.environ.get(name) for name in case.parsed["environment"] or {}}
    os.environ.update(case.parsed["environment"] or {})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
