"""What the tests of one config have around them: its file, resources, environment and log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamer.config.definitions import Case
from streamer.config.target import Target, open_target
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.message import Execution
from streamer.unit_tests.hidden import Hidden


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
        hidden: what must not be shown.
    """

    config: str
    resource_files: tuple[str, ...] = ()
    log: LogLine = _silent
    level: str = "OFF"
    hidden: Hidden = field(default_factory=Hidden)

    def open(self, case: Case, file: str = "") -> Target:
        """Read the config, or another file beside it, for a test.

        Raises:
            ConfigError: it cannot be read at all, or there is something wrong with a resource.
            StreamerError: there is no config, or nothing in the place of a mock.
        """
        path = str(self.directory / file) if file else self.config
        if not file and not os.path.exists(path):
            raise StreamerError(
                f"there is no config {path}; tests in a file of their own are about the config of "
                "the same name beside it, or name another: `target_processors: "
                "FILE#/pipeline/processors`"
            )
        target = open_target(path, self.environment(case), case.mocks, self.resource_files)
        self.hidden.learn(target.secrets, case.parsed["environment"])
        return target

    def tell(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Take a log line of a component."""
        self.log(level, self.hidden.text(text), self.hidden.value(fields))

    @property
    def directory(self) -> Path:
        """Where the files are that tests name."""
        return Path(self.config).parent

    def execution(self) -> Execution:
        """Return what processors may ask for; their clock is the real one, as in Benthos."""
        return Execution(time.time_ns, self.tell)

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
