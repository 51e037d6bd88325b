"""The errors that a user meets, and the lints that are collected before a stream starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class StreamerError(Exception):
    """An error whose text is meant for the user; the command line prints it without a traceback."""


@dataclass(frozen=True, slots=True)
class Lint:
    """One finding about a config: where, what was found, what to do.

    Attributes:
        file: the file's name as the user wrote it; empty when the text came from elsewhere.
        line: 1-based line; 0 when the finding has no place.
        column: 1-based column; 0 when the finding has no place.
        code: a short, stable name of the rule (`unknown_field`, `bad_duration`, …).
        message: what was found and what was expected.
        suggestion: what to do, or an empty string.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        text = f"{self.file}({self.line},{self.column}) {self.message}"
        return f"{text}; {self.suggestion}" if self.suggestion else text


class ConfigError(StreamerError):
    """A config that cannot run: carries every lint that was found, in the order of the file."""

    def __init__(self, lints: Sequence[Lint]) -> None:
        self.lints = tuple(lints)
        super().__init__("\n".join(str(lint) for lint in self.lints))


class MessageError(StreamerError):
    """One message could not be processed; the message is marked with the text and goes on."""
