"""Inputs of mappings from outside of messages: imported files, `file()`, `env()`.

What is read while a mapping is compiled is noted in the inputs of its config, and travels with the
mapping (or with a plan) to machines that have neither the driver's disk nor its environment: there
the noted value is taken. The configs of a process do not share their inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from streamer.bloblang.errors import QueryError
from streamer.bloblang.extension import NO_EXTENSION, CallKind, Extension
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.permissions import current_permissions

InputKey = tuple[str, str]
"""`("file", absolute path)`, `("env", name)`, or `("plugin", "function shout")`."""


@dataclass(frozen=True)
class CapturedInputs:
    """The values that a plan's mappings have read, on their way to a worker.

    Attributes:
        impure: whether mappings may be impure there.
        read: the values, by kind and name.
        extension: the functions that the config names.
    """

    impure: bool
    read: Mapping[InputKey, Any] = field(repr=False)
    extension: Extension = NO_EXTENSION

    def restore(self) -> MappingInputs:
        """Return inputs from which mappings take these values, whatever files hold by now."""
        return MappingInputs(self.impure, self.read, extension=self.extension)


@dataclass(eq=False)
class MappingInputs:
    """The values that the mappings of one config, or of one command, read from outside.

    Attributes:
        impure: whether mappings may read anything.
        restored: values that another process has read, by kind and name: they are taken again.
        recorded: values that mappings have read while they were compiled.
        outer: inputs that get the same values, such as those of a command that reads configs.
        extension: functions and methods in Python beside those of the language.
    """

    impure: bool = True
    restored: Mapping[InputKey, Any] = field(default_factory=dict, repr=False)
    recorded: dict[InputKey, Any] = field(default_factory=dict, repr=False)
    outer: MappingInputs | None = field(default=None, repr=False)
    extension: Extension = NO_EXTENSION

    @contextmanager
    def active(self) -> Iterator[MappingInputs]:
        """Make these the inputs of mappings that are compiled in this very context meanwhile.

        Those count too that were compiled before, and are taken again.
        """
        before = _active_inputs.set(self)
        try:
            yield self
        finally:
            _active_inputs.reset(before)

    def __reduce__(self) -> tuple[type[MappingInputs], tuple[Any, ...]]:
        # What a config had read is taken again where it comes back, as from a checkpoint.
        return MappingInputs, (self.impure, self.capture().read, {}, None, self.extension)

    def record(self, read: Mapping[InputKey, Any]) -> None:
        """Add values that a mapping has read."""
        self.recorded.update(read)
        if self.outer is not None:
            self.outer.record(read)

    def capture(self) -> CapturedInputs:
        """Return all values that the mappings have read so far, here or before they came here."""
        return CapturedInputs(self.impure, {**self.restored, **self.recorded}, self.extension)

    @property
    def files(self) -> frozenset[str]:
        """The absolute paths of the files that were read."""
        return frozenset(name for kind, name in list(self.recorded) if kind == "file")

    @property
    def plugins(self) -> dict[str, str]:
        """The packages, with versions, of the functions of other packages: by `function shout`."""
        read = self.recorded.copy().items()
        return {name: value for (kind, name), value in read if kind == "plugin"}

    @property
    def variables(self) -> dict[str, str | None]:
        """The environment variables that were read."""
        read = self.recorded.copy().items()
        return {name: value for (kind, name), value in read if kind == "env"}


_process_inputs = MappingInputs()
_active_inputs: ContextVar[MappingInputs | None] = ContextVar("_active_inputs", default=None)


def current_inputs() -> MappingInputs:
    """Return the inputs that hold here: those of the context, else those of the process."""
    return _active_inputs.get() or _process_inputs


def nest_inputs(impure: bool = True) -> MappingInputs:
    """Return inputs of their own for a part of what is done here, such as one config.

    Args:
        impure: False refuses impure functions and imports; True leaves it as it is here.

    Example:
        >>> from streamer.bloblang import compile_mapping
        >>> with nest_inputs().active() as inputs:
        ...     mapping = compile_mapping('root.home = env("HOME")')
        >>> list(inputs.variables)
        ['HOME']
    """
    around = current_inputs()
    return MappingInputs(
        around.impure and impure,
        around.restored,
        outer=_active_inputs.get(),
        extension=around.extension,
    )


def forbid_impure(forbidden: bool = True) -> AbstractContextManager[MappingInputs]:
    """Refuse impure functions and imports in every mapping that is compiled here meanwhile.

    Args:
        forbidden: False leaves all as it is.
    """
    return nest_inputs(impure=not forbidden).active()


def restore_inputs(captured: CapturedInputs) -> None:
    """Have mappings of this process take what the driver read; a worker does so for each task."""
    global _process_inputs
    _process_inputs = captured.restore()


def _record(read: Mapping[InputKey, Any]) -> None:
    inputs = _active_inputs.get()
    # Nobody would ever forget what the inputs of a process keep.
    if inputs is not None:
        inputs.record(read)


def record_files(files: Mapping[str, bytes]) -> None:
    """Note files that a config has read beside its mappings, by their absolute paths."""
    _record({("file", path): content for path, content in files.items()})


class StateCall(NamedTuple):
    """A call in a mapping that keeps state by key.

    Attributes:
        text: the call as it is written, without spaces; names its state within a component.
        name: names its state in the whole pipeline; empty without a name.
    """

    text: str
    name: str


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
        state_calls: the mapping's calls that keep state by key; shared likewise.
        extension: functions and methods beside those of the language.
    """

    compile_nested: Callable[[str], NestedMapping]

    def __init__(
        self,
        impure: bool | None = None,
        directory: str = "",
        json_numbers: bool = True,
        extension: Extension | None = None,
    ) -> None:
        """Begin with nothing read.

        Args:
            impure: whether the mapping may be impure; None for what is allowed here.
            directory: where relative imports and `file_rel` begin; empty for the working directory.
            json_numbers: whether messages come from JSON.
            extension: further functions; None for those of the config that is read here.
        """
        self.json_numbers = json_numbers
        extension = current_inputs().extension if extension is None else extension
        if extension.has_installed and not current_permissions().python:
            extension = replace(extension, has_installed=False)
        self.extension = extension
        allowed = current_inputs().impure and current_permissions().local
        self.impure = allowed and impure is not False
        self.directory = os.path.abspath(directory)
        self.read: dict[InputKey, Any] = {}
        self.state_calls: list[StateCall] = []
        self._frozen = False

    def relative_to(self, path: str) -> MappingEnvironment:
        """Return the outside as a mapping in the file of that path sees it."""
        other = MappingEnvironment(
            self.impure,
            os.path.dirname(self.resolve_path(path)),
            self.json_numbers,
            self.extension,
        )
        other.read, other.compile_nested = self.read, self.compile_nested
        other.state_calls = self.state_calls
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

    def note_plugin(self, kind: CallKind, name: str, distribution: str) -> None:
        """Note the package that has a function or method which the mapping calls."""
        self._read_once(("plugin", f"{kind} {name}"), lambda: distribution)

    def _read_once(self, key: InputKey, read: Callable[[], Any]) -> Any:
        if key in self.read:
            return self.read[key]
        restored = current_inputs().restored
        value = restored[key] if key in restored else read()
        if not self._frozen:
            self.read[key] = value
            _record({key: value})
        return value

    def has_changed(self) -> bool:
        """Whether something that was read is no longer as it was."""
        # The packages of a process stay the same.
        read = ((key, value) for key, value in self.read.items() if key[0] != "plugin")
        return any(_current_value(key) != value for key, value in read)


def _current_value(key: InputKey) -> Any:
    restored = current_inputs().restored
    if key in restored:
        return restored[key]
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
        _record(compiled.environment.read)
        return compiled


def recompile(
    compile_text: Callable[..., Any],
    text: str,
    impure: bool,
    directory: str,
    read: Mapping[InputKey, Any],
    extension: Extension = NO_EXTENSION,
) -> Any:
    """Compile a text that has travelled, with the values and functions that it brings along."""
    around = current_inputs()
    inputs = MappingInputs(
        around.impure,
        {**around.restored, **read},
        outer=_active_inputs.get(),
        extension=extension,
    )
    with inputs.active():
        return compile_text(text, impure=impure, directory=directory)
