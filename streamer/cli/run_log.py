"""The log of a run, which goes on by another config when that takes the place of the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamer.cli.log_output import LogConfig, Logger, Overlay
from streamer.config import Config
from streamer.config.secrets import add_variable_values
from streamer.core.log_format import LogLine


class RunLog:
    """Takes log lines. It can be used from several threads.

    Attributes:
        level: the lowest level that is written.
        on_error: called with the text of each line of an error.
        on_line: called with each line.
    """

    def __init__(self, config: Config, level: str | None) -> None:
        """Begin.

        Args:
            config: its `logger` section, and its secrets.
            level: wins over the section's; None leaves it to that.

        Raises:
            StreamerError: the log's file cannot be opened.
        """
        self._forced_level = level
        self.on_error: Callable[[str], None] = lambda text: None
        self.on_line: LogLine = lambda level, text, fields: None
        self._overlay: Overlay | None = None
        self.use_config(config)

    def use_config(self, config: Config) -> None:
        """Go on by another config.

        Raises:
            StreamerError: its file cannot be opened; the log goes on as before.
        """
        settings = LogConfig.from_parsed(config.logger)
        if self._forced_level is not None:
            settings = replace(settings, level=self._forced_level)
        logger = Logger(
            settings,
            secrets=add_variable_values(config.secrets, config.inputs),
            overlay=self._overlay,
        )
        self._logger, self.level = logger, settings.level

    def __call__(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Write a line."""
        if level in ("ERROR", "FATAL"):
            self.on_error(text)
        self.on_line(level, text, fields)
        self._logger.emit(level, text, fields, time.time_ns())

    def attach(self, overlay: Overlay | None) -> None:
        """Set the overlay at the bottom of the terminal; None for none."""
        self._overlay = overlay
        self._logger.attach(overlay)
