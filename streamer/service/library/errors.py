"""Errors of streams in a program."""

from __future__ import annotations

from streamer.core.errors import StreamerError


class StreamFailedError(StreamerError):
    """A stream has failed; the text has the reason, without secrets.

    Attributes:
        stream: the stream's name.
    """

    def __init__(self, stream: str, reason: str) -> None:
        """Take the stream's name, and the reason."""
        self.stream = stream
        super().__init__(f"the stream {stream} has failed: {reason}")

    def __reduce__(self) -> tuple[type[StreamFailedError], tuple[str, str]]:
        _, _, reason = str(self).partition(" has failed: ")
        return StreamFailedError, (self.stream, reason)


class StreamTimeoutError(StreamerError, TimeoutError):
    """A wait has ended before the stream was there; the stream goes on."""


class UnitTestsFailedError(StreamerError, AssertionError):
    """Unit tests of a config have failed; the text is their report."""
