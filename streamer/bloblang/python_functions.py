"""Functions and methods of mappings that are written in Python.

A decorator attaches data to a plain function, and returns the function as it was. Reading a module
makes a `Declaration` of each: parameters come from the signature, their types from annotations.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any, Final, TypeVar

from streamer.bloblang.declare import REQUIRED, STREAMER, Declaration, Example, Param
from streamer.bloblang.errors import QueryError, TypeMismatch, UnplacedError
from streamer.bloblang.extension import CallKind
from streamer.bloblang.runtime.arguments import CONVERTERS
from streamer.core.errors import StreamerError
from streamer.core.python_values import NoValueError, copy_plain, to_message_value
from streamer.core.timestamps import Timestamp

_F = TypeVar("_F", bound=Callable[..., Any])

CATEGORY: Final = "Python"
_ATTRIBUTE: Final = "__streamer_bloblang__"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US: Final = 1_000
_TYPES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "float",
    bool: "bool",
    list: "array",
    dict: "object",
    datetime: "timestamp",
}
_TARGET_NAMES: Final[Mapping[str, str]] = {"integer": "number", "float": "number"}
_FIXED_KINDS: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)

DescribeError = Callable[[BaseException], str]
"""Returns an error of a user's code in words."""


class FunctionError(StreamerError):
    """A function cannot be called by mappings; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A function's mark, which its decorator sets.

    Attributes:
        kind: whether mappings call it as a function or a method.
        name: their name for it.
        is_deterministic: whether the same arguments always give the same result.
        examples: mappings with their inputs and outputs.
    """

    kind: CallKind
    name: str
    is_deterministic: bool
    examples: tuple[Example, ...]


def bloblang_function(
    name: str = "", *, deterministic: bool = True, examples: tuple[tuple[str, str, str], ...] = ()
) -> Callable[[_F], _F]:
    """Return a decorator for a function that mappings may call.

    Args:
        name: the name in mappings; the name of the Python function without one.
        deterministic: False for one whose results differ for the same arguments, or that reads
            something beside them: its results are then never computed in advance.
        examples: for its documentation: each a mapping, the input and the output, as JSON.

    Example:
        >>> @bloblang_function()
        ... def add_vat(net: float, rate: float = 0.19) -> float:
        ...     return net * (1 + rate)
        >>> add_vat(100, 0.5)
        150.0
    """
    return _make_decorator("function", name, deterministic, examples)


def bloblang_method(
    name: str = "", *, deterministic: bool = True, examples: tuple[tuple[str, str, str], ...] = ()
) -> Callable[[_F], _F]:
    """Return a decorator for a method of mappings, whose first parameter is the target.

    Args:
        name: the name in mappings; the name of the Python function without one.
        deterministic: see `bloblang_function`.
        examples: likewise.

    Example:
        >>> @bloblang_method()
        ... def shout(text: str, marks: int = 1) -> str:
        ...     return text.upper() + "!" * marks
    """
    return _make_decorator("method", name, deterministic, examples)


def _make_decorator(
    kind: CallKind, name: str, deterministic: bool, examples: tuple[tuple[str, str, str], ...]
) -> Callable[[_F], _F]:
    made = tuple(Example(*one) for one in examples)

    def attach(function: _F) -> _F:
        own = name or getattr(function, "__name__", "")
        marks = (*getattr(function, _ATTRIBUTE, ()), Mark(kind, own, deterministic, made))
        setattr(function, _ATTRIBUTE, marks)
        return function

    return attach


def read_marks(target: Any) -> tuple[Mark, ...]:
    """Return the marks of an object; none for one without a decorator."""
    if isinstance(target, type) or not callable(target):
        return ()
    marks = getattr(target, _ATTRIBUTE, ())
    if not isinstance(marks, tuple) or not all(isinstance(mark, Mark) for mark in marks):
        return ()
    return marks


def iterate_functions(module: types.ModuleType) -> Iterator[tuple[Mark, Callable[..., Any]]]:
    """Return the marked functions of a module, in their order."""
    for target in list(vars(module).values()):
        for mark in read_marks(target):
            yield mark, target


def declare_python(
    mark: Mark,
    function: Callable[..., Any],
    describe: DescribeError,
    prepare: Callable[[], None] | None = None,
    *,
    category: str = CATEGORY,
) -> Declaration:
    """Return the declaration of a function in Python.

    Args:
        mark: the mark of its decorator.
        function: the function.
        describe: words its errors.
        prepare: is called before each call.
        category: the heading that lists it.

    Raises:
        FunctionError: mappings cannot call it.
    """
    if not _NAME.fullmatch(mark.name):
        raise FunctionError(f"{mark.name!r} is no name in mappings; expected one such as add_vat")
    parameters, is_variadic = _read_parameters(function)
    is_method = mark.kind == "method"
    if is_method and not parameters:
        raise FunctionError(f"the method {mark.name} has no parameter for its target")
    run = _make_call(mark, function, parameters, describe, prepare)
    return Declaration(
        name=mark.name,
        category=category,
        summary=(inspect.getdoc(function) or "").partition("\n")[0] or "A function in Python.",
        params=() if is_variadic else tuple(parameters[is_method:]),
        run=run,
        variadic=is_variadic,
        examples=mark.examples,
        uses=() if mark.is_deterministic else ("random",),
        origin=STREAMER,
    )


def _read_parameters(function: Callable[..., Any]) -> tuple[list[Param], bool]:
    name = getattr(function, "__name__", str(function))
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise FunctionError(f"{name} is a coroutine function; expected a plain one")
    if inspect.isgeneratorfunction(function):
        raise FunctionError(f"{name} is a generator; expected a function that returns its result")
    try:
        signature = inspect.signature(function, eval_str=True)
    except Exception:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as e:
            raise FunctionError(f"{name} has parameters that cannot be read: {e}") from None
    parameters: list[Param] = []
    is_variadic = False
    for one in signature.parameters.values():
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            is_variadic = True
        elif one.kind not in _FIXED_KINDS:
            raise FunctionError(
                f"{name} has the parameter {one.name}, which takes a keyword alone; mappings give "
                "arguments by position"
            )
        else:
            default = REQUIRED if one.default is inspect.Parameter.empty else one.default
            if default is not REQUIRED:
                default = _check_default(name, one.name, default)
            parameters.append(Param(one.name, _find_type(one.annotation), default))
    return parameters, is_variadic


def _check_default(function: str, name: str, value: Any) -> Any:
    try:
        return to_message_value(value)
    except NoValueError as e:
        raise FunctionError(f"{function} has a default of {name} that is no value: {e}") from None


def _find_type(annotation: Any) -> str:
    origin = getattr(annotation, "__origin__", annotation)
    try:
        return _TYPES.get(origin, "any")
    except TypeError:
        return "any"


def _make_call(
    mark: Mark,
    function: Callable[..., Any],
    params: Sequence[Param],
    describe: DescribeError,
    prepare: Callable[[], None] | None,
) -> Callable[..., Any]:
    """Return the function that compiled mappings call: values are copied in, results checked."""
    where = f"{mark.kind} '{mark.name}'"
    converters: list[Callable[[Any], Any]] = [
        _copy_time if param.type == "timestamp" else copy_plain for param in params
    ]
    if mark.kind == "method":
        converters[0] = _make_target_converter(params[0].type)

    def call(*arguments: Any) -> Any:
        values = [
            convert(value)
            for convert, value in zip_longest(converters, arguments, fillvalue=copy_plain)
        ]
        if prepare is not None:
            prepare()
        try:
            return to_message_value(function(*values))
        except NoValueError as e:
            raise UnplacedError(f"{where}: {e}") from None
        except (Exception, SystemExit, GeneratorExit) as e:
            raise UnplacedError(f"{where}: {describe(e)}") from None

    return call


def _copy_time(value: Any) -> Any:
    if type(value) is Timestamp:
        return _EPOCH + timedelta(microseconds=value.ns // _NS_PER_US)
    return copy_plain(value)


def _make_target_converter(kind: str) -> Callable[[Any], Any]:
    """Return the function that checks and copies a target of a type."""
    if kind == "any":
        return copy_plain
    convert = CONVERTERS[kind]

    def read_target(value: Any) -> Any:
        try:
            return _copy_time(convert(value))
        except QueryError:
            raise TypeMismatch(value, _TARGET_NAMES.get(kind, kind)) from None

    return read_target
