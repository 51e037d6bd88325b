"""Environment of one config's tests: its file, resources, variables and log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamer.config.resources import ResourceText
from streamer.config.unit_tests.definitions import Case
from streamer.config.unit_tests.tested_config import TestedConfig, open_tested_config
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.keyed_state import TransientState
from streamer.core.locations import is_location
from streamer.core.log_format import LogLine
from streamer.core.permissions import current_permissions
from streamer.tools.unit_tests.redaction import SecretRedactor


def _ignore_log(level: str, text: str, fields: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class SuiteEnvironment:
    """One config's tests.

    Attributes:
        config: the config's file.
        resource_files: files with further resources, or their texts.
        log: takes the log lines of components.
        level: the level down to which there are any.
        redactor: what must not be shown.
        files_directory: where the files begin that tests name; empty for the config's directory.
    """

    config: str
    resource_files: tuple[str | ResourceText, ...] = ()
    log: LogLine = _ignore_log
    level: str = "OFF"
    redactor: SecretRedactor = field(default_factory=SecretRedactor)
    files_directory: str = ""

    def open_config(self, case: Case, file: str = "") -> TestedConfig:
        """Read the config, or another file beside it, for a test.

        Raises:
            ConfigError: it cannot be read at all, or there is something wrong with a resource.
            StreamerError: there is no config, or nothing in the place of a mock.
        """
        path = self._find_file(file) if file else self.config
        if not file and not is_location(path) and not os.path.exists(path):
            raise StreamerError(
                f"there is no config {path}; tests in a file of their own are about the config of "
                "the same name beside it, or name another: `target_processors: "
                "FILE#/pipeline/processors`"
            )
        target = open_tested_config(
            path, self.merge_variables(case), case.mocks, self.resource_files
        )
        self.redactor.add_secrets(target.secrets, case.parsed["environment"])
        return target

    def log_redacted(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Take a log line of a component."""
        self.log(level, self.redactor.redact_text(text), self.redactor.redact_value(fields))

    @property
    def directory(self) -> Path:
        """The directory of the files that tests name."""
        return Path(self.files_directory or Path(self.config).parent)

    def _find_file(self, file: str) -> str:
        """Return the path of a config that a test names.

        Raises:
            NotPermittedError: it is another than the tested one, and files are out of reach.
        """
        if os.path.normpath(file) == os.path.basename(self.config):
            return self.config
        return current_permissions().file(str(self.directory / file))

    def make_execution(self, log: LogLine) -> Execution:
        """Return what processors may ask for; their clock is the real one, as in Benthos.

        All messages of a case have one key, which is new.
        """
        ex = Execution(time.time_ns, log)
        ex.keyed_state = TransientState()
        return ex

    def merge_variables(self, case: Case) -> Mapping[str, str]:
        """Return the variables of the process, where tests may see them, and the case's own."""
        around = os.environ if current_permissions().local else {}
        return {**around, **(case.parsed["environment"] or {})}


@contextmanager
def set_environment(case: Case) -> Iterator[None]:
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
