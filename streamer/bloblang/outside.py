"""What mappings take from outside of messages: imported files, `file()`, `env()`; and whether.

What is read while a mapping is compiled is noted, and travels with the mapping (or with a plan) to
machines that have neither the driver's disk nor its environment: there the noted value is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from streamer.bloblang.errors import QueryError
from streamer.permissions import current_permissions

Key = tuple[str, str]
"""`("file", absolute path)` or `("env", name)`."""

_noted: dict[Key, Any] = {}
_brought: dict[Key, Any] = {}
_allowed = True
_heard: ContextVar[set[Key] | None] = ContextVar("_heard", default=None)


@contextmanager
def noting() -> Iterator[set[Key]]:
    """Gather what is read by mappings that are compiled in this very context meanwhile.

    Those count too that were compiled before, and are taken again.
    """
    found: set[Key] = set()
    before = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(before)


@contextmanager
def no_impure(forbidden: bool = True) -> Iterator[None]:
    """Refuse impure functions and imports in every mapping that this process compiles meanwhile.

    Args:
        forbidden: False leaves all as it is.
    """
    global _allowed
    before = _allowed
    _allowed = before and not forbidden
    try:
        yield
    finally:
        _allowed = before


def impure_allowed() -> bool:
    """Whether mappings may use impure functions and imports in this process."""
    return _allowed


@dataclass(frozen=True)
class Luggage:
    """What mappings have read from outside, on its way to a worker; unpickling puts it to use.

    Attributes:
        impure: whether mappings may be impure there; None for as it is.
        read: what was read, by kind and name.
    """

    impure: bool | None
    read: Mapping[Key, Any] = field(repr=False)

    def __reduce__(self) -> tuple[Callable[..., Luggage], tuple[bool | None, dict[Key, Any]]]:
        return (_unpack, (self.impure, dict(self.read)))


def luggage() -> Luggage:
    """Return all that mappings compiled in this process have read so far."""
    return Luggage(_allowed, {**_brought, **_noted})


def _unpack(impure: bool | None, read: dict[Key, Any]) -> Luggage:
    global _allowed
    _allowed = _allowed if impure is None else impure
    _brought.update(read)
    return Luggage(impure, read)


class Outside:
    """The outside as one mapping sees it.

    Attributes:
        impure: whether it may be looked at.
        read: what was read while the mapping was compiled, by kind and name; shared with the
            mappings that it imports.
        json_numbers: whether messages come from JSON, so that their numbers are text to Go.
    """

    def __init__(
        self, impure: bool | None = None, directory: str = "", json_numbers: bool = True
    ) -> None:
        """Begin with nothing read.

        Args:
            impure: whether the mapping may be impure; None for what the process allows.
            directory: where relative imports and `file_rel` begin; empty for the working directory.
            json_numbers: whether messages come from JSON.
        """
        self.json_numbers = json_numbers
        self.impure = _allowed and impure is not False and current_permissions().local
        self.directory = os.path.abspath(directory)
        self.read: dict[Key, Any] = {}
        self._sealed = False

    def beside(self, path: str) -> Outside:
        """Return the outside as a mapping in the file of that path sees it."""
        other = Outside(self.impure, os.path.dirname(self.path(path)), self.json_numbers)
        other.read = self.read
        return other

    def seal(self) -> None:
        """End the time in which what is read is noted: the mapping is compiled."""
        self._sealed = True

    def path(self, path: str) -> str:
        """Return the absolute path of one that is relative to the mapping's file."""
        return os.path.normpath(os.path.join(self.directory, path))

    def fetch(self, path: str) -> bytes:
        """Return the bytes of a file; what the mapping's compilation read stays as it was.

        Raises:
            QueryError: the file cannot be read, in Go's words.
        """
        found: bytes = self._take(("file", os.path.abspath(path)), lambda: read_file(path))
        return found

    def variable(self, name: str) -> str | None:
        """Return an environment variable; what the mapping's compilation read stays as it was."""
        found: str | None = self._take(("env", name), lambda: os.environ.get(name))
        return found

    def _take(self, key: Key, read: Callable[[], Any]) -> Any:
        if key in self.read:
            return self.read[key]
        value = _brought[key] if key in _brought else read()
        if not self._sealed:
            self.read[key] = _noted[key] = value
        return value

    def changed(self) -> bool:
        """Whether something that was read is no longer as it was."""
        return any(_now(key) != value for key, value in self.read.items())


def _now(key: Key) -> Any:
    if key in _brought:
        return _brought[key]
    kind, name = key
    try:
        return os.environ.get(name) if kind == "env" else read_file(name)
    except QueryError as e:
        return e


def read_file(path: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        QueryError: it cannot be read, in Go's words.
    """
    try:
        with open(path, "rb") as source:
            return source.read()
    except (OSError, ValueError) as e:
        reason = _REASONS.get(type(e), str(getattr(e, "strerror", None) or e).lower())
        verb = "read" if isinstance(e, IsADirectoryError) else "open"
        raise QueryError(f"{verb} {path}: {reason}") from None


_REASONS: Final[dict[type, str]] = {ValueError: "invalid argument"}


class _Compiled(Protocol):
    outside: Outside


_M = TypeVar("_M", bound=_Compiled)
_editions: dict[Hashable, int] = {}


def latest(compiled: Callable[[str, bool, str, int], _M], text: str, outside: Outside) -> _M:
    """Return what a cached compiler makes of a text, made anew when what it read has changed.

    Args:
        compiled: takes text, whether it may be impure, the directory, and the edition's number.
        text: the mapping or interpolated string.
        outside: what it may see.
    """
    key = (compiled, text, outside.impure, outside.directory)
    edition = _editions.get(key, 0)
    made = compiled(text, outside.impure, outside.directory, edition)
    if made.outside.read and made.outside.changed():
        _editions[key] = edition = edition + 1
        made = compiled(text, outside.impure, outside.directory, edition)
    if (heard := _heard.get()) is not None:
        heard.update(made.outside.read)
    return made
