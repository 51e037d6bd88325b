"""Errors of requests to change streams, by the API's status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamer.core.errors import Lint, StreamerError
from streamer.plan.change_impact import ChangeImpact


class UnknownStreamError(StreamerError):
    """There is no such stream."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"there is no stream {stream_id!r}")


class StreamExistsError(StreamerError):
    """There is a stream of that id already."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"there is a stream {stream_id!r} already")


class RefusedError(StreamerError):
    """The request asks for what the stream, as it is, cannot do; the text says what to do.

    Attributes:
        judgement: of the change that was asked for, if it is about one.
    """

    def __init__(self, text: str, judgement: ChangeImpact | None = None) -> None:
        self.judgement = judgement
        super().__init__(text)


class BadRequestError(StreamerError):
    """The request cannot be understood; the text says why."""


class BadConfigError(StreamerError):
    """A config has findings.

    Attributes:
        findings: as texts, in the order of the config.
        lints: the same with their places and codes, where these are known.
    """

    def __init__(self, findings: Sequence[str], lints: Sequence[Lint] = ()) -> None:
        self.findings = tuple(findings)
        self.lints = tuple(lints)
        super().__init__("\n".join(self.findings))

    @classmethod
    def from_lints(cls, lints: Iterable[Lint]) -> BadConfigError:
        """Return the error that these findings make."""
        all_lints = tuple(lints)
        return cls([str(lint) for lint in all_lints] or ["the config cannot be read"], all_lints)


class StartError(StreamerError):
    """A stream did not start; the text says why, and what runs instead."""
