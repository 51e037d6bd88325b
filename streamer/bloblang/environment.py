"""What mappings take from outside of messages: imported files, `file()`, `env()`; and whether.

What is read while a mapping is compiled is noted, and travels with the mapping (or with a plan) to
machines that have neither the driver's disk nor its environment: there the noted value is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from streamer.bloblang.errors import QueryError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import current_permissions

InputKey = tuple[str, str]
"""`("file", absolute path)` or `("env", name)`."""

_recorded_inputs: dict[InputKey, Any] = {}
_restored_inputs: dict[InputKey, Any] = {}
_impure_allowed = True
_recording: ContextVar[set[InputKey] | None] = ContextVar("_recording", default=None)


@contextmanager
def record_reads() -> Iterator[set[InputKey]]:
    """Gather what is read by mappings that are compiled in this very context meanwhile.

    Those count too that were compiled before, and are taken again.
    """
    keys: set[InputKey] = set()
    before = _recording.set(keys)
    try:
        yield keys
    finally:
        _recording.reset(before)


@contextmanager
def forbid_impure(forbidden: bool = True) -> Iterator[None]:
    """Refuse impure functions and imports in every mapping that this process compiles meanwhile.

    Args:
        forbidden: False leaves all as it is.
    """
    global _impure_allowed
    before = _impure_allowed
    _impure_allowed = before and not forbidden
    try:
        yield
    finally:
        _impure_allowed = before


def is_impure_allowed() -> bool:
    """Whether mappings may use impure functions and imports in this process."""
    return _impure_allowed


@dataclass(frozen=True)
class CapturedInputs:
    """What mappings have read from outside, on its way to a worker; unpickling puts it to use.

    Attributes:
        impure: whether mappings may be impure there; None for as it is.
        read: what was read, by kind and name.
    """

    impure: bool | None
    read: Mapping[InputKey, Any] = field(repr=False)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., CapturedInputs], tuple[bool | None, dict[InputKey, Any]]]:
        return (_restore_inputs, (self.impure, dict(self.read)))


def capture_inputs() -> CapturedInputs:
    """Return all that mappings compiled in this process have read so far."""
    return CapturedInputs(_impure_allowed, {**_restored_inputs, **_recorded_inputs})


def _restore_inputs(impure: bool | None, read: dict[InputKey, Any]) -> CapturedInputs:
    global _impure_allowed
    _impure_allowed = _impure_allowed if impure is None else impure
    _restored_inputs.update(read)
    return CapturedInputs(impure, read)


class NestedMapping(Protocol):
    """A compiled mapping, as the method `bloblang` applies it."""

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Return the value that the mapping makes of one message of a batch."""


class MappingEnvironment:
    """The outside as one mapping sees it.

    Attributes:
        compile_nested: compiles the text that the method `bloblang` is given. `mapping.py` sets
            it: mappings are made of methods, which therefore cannot import what compiles them.
        impure: whether it may be looked at.
        read: what was read while the mapping was compiled, by kind and name; shared with the
            mappings that it imports.
        json_numbers: whether messages come from JSON, so that their numbers are text to Go.
    """

    compile_nested: Callable[[str], NestedMapping]

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
        self.impure = _impure_allowed and impure is not False and current_permissions().local
        self.directory = os.path.abspath(directory)
        self.read: dict[InputKey, Any] = {}
        self._frozen = False

    def relative_to(self, path: str) -> MappingEnvironment:
        """Return the outside as a mapping in the file of that path sees it."""
        other = MappingEnvironment(
            self.impure, os.path.dirname(self.resolve_path(path)), self.json_numbers
        )
        other.read, other.compile_nested = self.read, self.compile_nested
        return other

    def freeze(self) -> None:
        """End the time in which what is read is noted: the mapping is compiled."""
        self._frozen = True

    def resolve_path(self, path: str) -> str:
        """Return the absolute path of one that is relative to the mapping's file."""
        return os.path.normpath(os.path.join(self.directory, path))

    def read_file(self, path: str) -> bytes:
        """Return the bytes of a file; what the mapping's compilation read stays as it was.

        Raises:
            QueryError: the file cannot be read, in Go's words.
        """
        content: bytes = self._read_once(("file", os.path.abspath(path)), lambda: read_file(path))
        return content

    def read_variable(self, name: str) -> str | None:
        """Return an environment variable; what the mapping's compilation read stays as it was."""
        value: str | None = self._read_once(("env", name), lambda: os.environ.get(name))
        return value

    def _read_once(self, key: InputKey, read: Callable[[], Any]) -> Any:
        if key in self.read:
            return self.read[key]
        value = _restored_inputs[key] if key in _restored_inputs else read()
        if not self._frozen:
            self.read[key] = _recorded_inputs[key] = value
        return value

    def has_changed(self) -> bool:
        """Whether something that was read is no longer as it was."""
        return any(_current_value(key) != value for key, value in self.read.items())


def _current_value(key: InputKey) -> Any:
    if key in _restored_inputs:
        return _restored_inputs[key]
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
        reason = _OS_ERROR_REASONS.get(type(e), str(getattr(e, "strerror", None) or e).lower())
        verb = "read" if isinstance(e, IsADirectoryError) else "open"
        raise QueryError(f"{verb} {path}: {reason}") from None


_OS_ERROR_REASONS: Final[dict[type, str]] = {ValueError: "invalid argument"}


class _CompiledText(Protocol):
    environment: MappingEnvironment


_CompiledT = TypeVar("_CompiledT", bound=_CompiledText)


class CompiledEntry(Generic[_CompiledT]):
    """A compiled text in a cache, made anew when a file or variable that it read has changed."""

    def __init__(self, compile_text: Callable[[], _CompiledT]) -> None:
        """Compile the text.

        Args:
            compile_text: compiles it, in an environment of its own each time.

        Raises:
            BloblangError: it is no mapping, or no interpolated string.
        """
        self._compile_text = compile_text
        self._compiled = compile_text()

    def get_current(self) -> _CompiledT:
        """Return the compiled text, made of what files and variables are now.

        Raises:
            BloblangError: it cannot be compiled any more.
        """
        compiled = self._compiled
        if compiled.environment.read and compiled.environment.has_changed():
            self._compiled = compiled = self._compile_text()
        if (recording := _recording.get()) is not None:
            recording.update(compiled.environment.read)
        return compiled
