"""The errors that a user meets, and the lints that are collected before a stream starts."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_TRANSIENT_ERRNOS: Final = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT)
)


class StreamerError(Exception):
    """An error whose text is meant for the user; the command line prints it without a traceback.

    Attributes:
        transient: whether the same may work later though nothing of the config changes, since a
            server is away, or the machine has no descriptors, memory or disk left; None where the
            error that it was made of says so.
        absent: whether a server does not have what the config names, such as a topic. That does not
            pass by itself, but where the server itself has been away and has just come back.
    """

    transient: bool | None = None
    absent: bool = False


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


class StreamAbortedError(StreamerError):
    """A processor ends the stream on purpose: no message is marked, and nothing is tried again.

    Attributes:
        label: the processor's label, or an empty string.
        path: where it stands.
    """

    def __init__(self, text: str, label: str = "", path: str = "") -> None:
        self.label, self.path = label, path
        super().__init__(text)

    def __reduce__(self) -> tuple[type[StreamAbortedError], tuple[str, str, str]]:
        return StreamAbortedError, (str(self), self.label, self.path)


def as_transient(error: StreamerError, transient: bool) -> StreamerError:
    """Return an error that says whether it may pass by itself; see `StreamerError.transient`."""
    error.transient = transient
    return error


def is_transient(error: BaseException, returned: bool = False) -> bool:
    """Return whether what failed may work later though nothing of the config changes.

    Args:
        error: an error; the first one in its chain of causes that is known decides.
        returned: whether the server was away before, and nothing has been read yet: who starts it
            again may not have made yet what is absent.
    """
    for one in _chain(error):
        if isinstance(one, StreamerError) and one.transient is not None:
            return one.transient or (returned and one.absent)
        if isinstance(one, ConnectionError | TimeoutError | MemoryError):
            return True
        if isinstance(one, OSError) and one.errno in _TRANSIENT_ERRNOS:
            return True
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__
