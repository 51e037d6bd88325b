"""The function that a config names: loaded once for each worker, with what it takes."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.connectors.python.annotations import EXPECTED_TEXT, Takes, read_type
from streamer.connectors.python.modules import ModuleSet
from streamer.connectors.python.user_traceback import OwnFiles, describe_error
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.sdk.spec import SourcedText

METADATA: Final = "metadata"
TABLES: Final = "tables"
_INLINE: Final = "<python {}>"


class CodeError(StreamerError):
    """Code cannot be loaded: running it raises, or the function is not in it."""


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Code, as a config names it.

    Attributes:
        code: inline code; None where a function is named.
        call: `package.module:function`; None for inline code.
        function: the name of the function in inline code.
        args: values of further parameters.
    """

    code: SourcedText | None
    call: SourcedText | None
    function: str
    args: Mapping[str, Any]

    @property
    def text(self) -> SourcedText:
        """The text that names or holds the code."""
        text = self.code if self.code is not None else self.call
        assert text is not None
        return text


class LoadedCode:
    """Code that has run, and the function that it has.

    Attributes:
        takes: what the function takes.
        extras: the parameters that it has of `metadata` and `tables`.
        is_async: whether it is a coroutine function.
        is_class: whether an object is made, whose method `process` is called.
        own: the files of the user.
    """

    def __init__(self, source: CodeSource, directory: Path) -> None:
        """Load the code.

        Args:
            source: the code.
            directory: where modules are written to.

        Raises:
            CodeError: it cannot be loaded.
        """
        self.source = source
        text = source.text
        self.modules = ModuleSet(text.digest, text.sources, directory)
        inline = _INLINE.format(text.digest) if source.code is not None else ""
        self.own = OwnFiles(inline, text, str(self.modules.directory))
        self._target = self._load()
        function = self._target
        self.is_class = isinstance(self._target, type)
        if isinstance(self._target, type):
            function = getattr(self._target, "process", None)
            if function is None:
                raise CodeError(f"the class {self._target.__name__} has no method process")
        self.takes, self.extras = self._read_parameters(function)
        self.is_async = inspect.iscoroutinefunction(function)

    def _load(self) -> Any:
        self.modules.activate()
        try:
            if self.source.code is not None:
                names = self._run_inline(self.source.code)
                name = self.source.function
                what = "the code"
            else:
                what, _, name = str(self.source.call).strip().partition(":")
                module = importlib.import_module(what)
                self._find_own_package(module)
                names = vars(module)
                if name not in names and hasattr(module, name):
                    return getattr(module, name)
        except Exception as e:
            raise CodeError(f"cannot load {self._describe()}: {describe_error(e, self.own)}") from e
        if name not in names:
            raise CodeError(f"{what} has no function {name}")
        if not callable(names[name]):
            raise CodeError(f"{name} of {what} is {type(names[name]).__name__}, no function")
        return names[name]

    def _describe(self) -> str:
        return "the code" if self.source.code is not None else str(self.source.call).strip()

    def _find_own_package(self, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if file and not self.modules.roots:
            root = sys.modules.get(module.__name__.partition(".")[0])
            places = [str(one) + "/" for one in getattr(root, "__path__", ())] or [file]
            self.own = OwnFiles(packages=places)

    def _run_inline(self, code: SourcedText) -> dict[str, Any]:
        name = f"streamer_python_{code.digest}"
        module = types.ModuleType(name)
        module.__dict__.update(Message=Message, __file__=code.file)
        # By its name dataclasses and pickles find what is in it.
        sys.modules[name] = module
        exec(compile(code, self.own.inline, "exec", dont_inherit=True), module.__dict__)
        return module.__dict__

    def _read_parameters(self, function: Any) -> tuple[Takes, frozenset[str]]:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as e:
            raise CodeError(f"{self._describe()} has parameters that cannot be read: {e}") from None
        if self.is_class:
            parameters = parameters[1:]
        if not parameters:
            raise CodeError(f"{self._describe()} takes nothing; {EXPECTED_TEXT}")
        first = parameters[0]
        takes = None
        if first.annotation is not inspect.Parameter.empty:
            names = getattr(inspect.unwrap(function), "__globals__", {})
            takes = read_type(first.annotation, names)
        if takes is None:
            raise CodeError(
                f"{self._describe()} does not say what it takes by the annotation of "
                f"{first.name}; {EXPECTED_TEXT}"
            )
        names_of_rest = {one.name for one in parameters[1:]}
        return takes, frozenset({METADATA, TABLES} & names_of_rest)

    def make(self) -> Callable[..., Any]:
        """Return what is called: the function with its args, or the method of a new object.

        An object is opened.

        Raises:
            CodeError: making or opening the object raises.
        """
        if not self.is_class:
            if not self.source.args:
                function: Callable[..., Any] = self._target
                return function
            from functools import partial

            return partial(self._target, **self.source.args)
        self.modules.activate()
        try:
            made = self._target(**self.source.args)
            if hasattr(made, "open"):
                made.open()
        except Exception as e:
            error = describe_error(e, self.own)
            raise CodeError(f"cannot open {self._target.__name__}: {error}") from e
        process: Callable[..., Any] = made.process
        return process

    def reload(self) -> None:
        """Run the code anew, with all modules beside the config."""
        self.modules.forget()
        self._target = self._load()
