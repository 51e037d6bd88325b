"""The log: which records are written, where, and in which form; the `logger` section's meaning.

Lines go to the standard error stream, or to a file instead when `file.path` is set. What is
secret never gets into a line: the values of secret fields and of environment variables, which the
config names, and the passwords in URLs are replaced.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TextIO

from streamer.cli.log_output.log_file import LogFile
from streamer.core.errors import StreamerError
from streamer.core.log_format import FieldNames, LogRecord, to_json, to_logfmt, to_terminal
from streamer.core.redaction import Redaction

_SEVERITY: Final = {"FATAL": 1, "ERROR": 2, "WARN": 3, "INFO": 4, "DEBUG": 5, "TRACE": 6}
_THRESHOLDS: Final = {**_SEVERITY, "OFF": 0, "NONE": 0, "ALL": 6}
_NO_OVERLAY: Final = nullcontext()


class Overlay(Protocol):
    """A status line at the bottom of the terminal, which makes space for a line of the log."""

    def hide(self) -> AbstractContextManager[None]:
        """Take the line off the screen while the block writes, and put it back."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The `logger` section; see `LogConfig.from_parsed` and the section's fields."""

    level: str = "INFO"
    format: str = "logfmt"
    add_timestamp: bool = True
    names: FieldNames = field(default_factory=FieldNames)
    static_fields: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    rotate: bool = False
    rotate_max_age_days: int = 0

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any], level: str | None = None) -> LogConfig:
        """Read the parsed `logger` section.

        Args:
            parsed: the section.
            level: a level that wins over the section's, or None.
        """
        file = parsed["file"]
        return cls(
            level=(level or parsed["level"]).upper(),
            format=parsed["format"],
            add_timestamp=parsed["add_timestamp"],
            names=FieldNames(
                parsed["timestamp_name"], parsed["level_name"], parsed["message_name"]
            ),
            static_fields=dict(parsed["static_fields"]),
            path=file["path"],
            rotate=file["rotate"],
            rotate_max_age_days=file["rotate_max_age_days"],
        )


class Logger:
    """Writes records as lines. It can be used from several threads."""

    def __init__(
        self,
        config: LogConfig,
        stream: TextIO | None = None,
        secrets: Mapping[str, str] | Iterable[str] = (),
        overlay: Overlay | None = None,
    ) -> None:
        """Open the log.

        Args:
            config: the `logger` section.
            stream: where lines go when no file is named; the standard error stream by default.
            secrets: texts that must not appear, maybe by what is shown instead (`Config.secrets`).
            overlay: what is taken off the terminal while a line is printed.

        Raises:
            StreamerError: the level or format is unknown, or the file cannot be opened.
        """
        if config.level not in _THRESHOLDS:
            raise StreamerError(
                f"logger.level is {config.level}: expected one of {', '.join(sorted(_THRESHOLDS))}"
            )
        self._threshold = _THRESHOLDS[config.level]
        self._config = config
        self._redaction = Redaction(secrets)
        # A signal's handler may log while its thread is in the middle of a line.
        self._lock = threading.RLock()
        self._stream = sys.stderr if stream is None else stream
        self._overlay = overlay
        self._file = (
            LogFile(config.path, config.rotate, config.rotate_max_age_days) if config.path else None
        )
        self._render = self._choose_renderer()

    def is_enabled(self, level: str) -> bool:
        """Whether records of that level are written."""
        return _SEVERITY[level] <= self._threshold

    def attach(self, overlay: Overlay | None) -> None:
        """Set the overlay at the bottom of the terminal; None for none."""
        with self._lock:
            self._overlay = overlay

    def emit(self, level: str, message: str, fields: Mapping[str, Any], time_ns: int) -> None:
        """Write a record, if its level is enabled.

        Args:
            level: `FATAL`, `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
            message: the text.
            fields: added to the static fields, over which they win.
            time_ns: when it happened, nanoseconds since the Unix epoch.
        """
        if not self.is_enabled(level):
            return
        scrubbed = self._redaction.redact_value({**self._config.static_fields, **fields})
        at = time_ns if self._config.add_timestamp else None
        line = self._render(
            LogRecord(level, self._redaction.redact_text(message.removesuffix("\n")), scrubbed, at),
            self._config.names,
        )
        with self._lock:
            self._write(line + "\n")

    def close(self) -> None:
        """Close the file, if there is one."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _choose_renderer(self) -> Callable[[LogRecord, FieldNames], str]:
        if self._config.format == "json":
            return to_json
        if self._config.format != "logfmt":
            raise StreamerError(
                f"log format '{self._config.format}' not recognized: expected json or logfmt"
            )
        colours = (
            self._file is None and is_terminal(self._stream) and not os.environ.get("NO_COLOR")
        )
        return to_terminal if colours else to_logfmt

    def _write(self, line: str) -> None:
        if self._file is not None:
            self._file.write(line)
            return
        # Nobody may read the log any more (a closed pipe), or a signal came in the middle of a
        # write, which Python calls a RuntimeError; neither must stop the stream.
        aside = self._overlay.hide() if self._overlay else _NO_OVERLAY
        with suppress(OSError, ValueError, RuntimeError), aside:
            self._stream.write(line)
            self._stream.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at the stream through a terminal that can be painted on."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False
