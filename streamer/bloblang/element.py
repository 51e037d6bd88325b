"""What messages bring to a fold: the value of an expression for each, gone through some steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.compiler.element import compile_element, compile_lambda
from streamer.bloblang.compiler.program import Compiled
from streamer.bloblang.diagnostics import explain
from streamer.bloblang.errors import OperandMismatch, QueryError, TypeMismatch
from streamer.bloblang.runtime import document
from streamer.bloblang.runtime.paths import search, step
from streamer.message import Message
from streamer.value import Number

Docs = Sequence[Any]


class Failed(NamedTuple):
    """A message, or an element, for which there is an error instead of a value.

    Attributes:
        step: which failed, from 1; 0 for the expression itself.
        text: the error's, with `AT` for the index of an element.
        sealed: whether the text already says what the value came from.
        said: whether it says so as long as no other words go before it.
    """

    step: int
    text: str
    sealed: bool
    said: bool


class Broken:
    """Stands for the document of a message that is none.

    Attributes:
        raw: the message's bytes.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


@dataclass(frozen=True)
class Element:
    """An expression that looks at one message's document alone, and steps that its value takes.

    Attributes:
        path: the field, where the expression is `json()` of a path; else None.
        source: the expression.
        steps: calls of `map_each` and `filter`.
    """

    path: tuple[str, ...] | None
    source: tree.Node
    steps: tuple[tree.Method, ...]

    def outcomes(self, docs: Docs) -> list[Any]:
        """Return for each document the value, `Dropped` or `Failed`; some may be `Broken`."""
        broken = Broken in set(map(type, docs))
        if self.path is None:
            return list(map(self._of_any, docs)) if broken else _each(self._compiled, docs)
        values = field_reader(self.path)(docs)
        if Number in set(map(type, values)):
            values = list(map(document.plain, values))
        if broken:
            pairs = zip(docs, values, strict=True)
            values = [_broken(doc) if type(doc) is Broken else value for doc, value in pairs]
            # A step may well take what stands for an error for a value: each is looked at.
            return [_one(self._compiled, value) for value in values] if self.steps else values
        return _each(self._compiled, values) if self.steps else values

    @cached_property
    def _compiled(self) -> Compiled:
        source = self.source if self.path is None else None
        return compile_element(source, self.steps, document_only=True)

    @cached_property
    def _of_message(self) -> Compiled:
        return compile_element(self.source, self.steps, document_only=False)

    def _of_any(self, doc: Any) -> Any:
        if type(doc) is not Broken:
            return _one(self._compiled, doc)
        message = Message(doc.raw)
        return _one(self._of_message, [message], 0, message, None, {})


@dataclass(frozen=True)
class Question:
    """What a method asks of each element.

    Attributes:
        query: the method's query.
    """

    query: tree.Node

    def answers(self, values: Sequence[Any]) -> list[Any]:
        """Return what the query gives for each value, or `Failed`."""
        return _each(self._compiled, values)

    @cached_property
    def _compiled(self) -> Compiled:
        return compile_lambda(self.query)


def _each(compiled: Compiled, values: Sequence[Any]) -> list[Any]:
    try:
        return list(map(compiled.run, values))
    except Exception:  # whatever one of them did: it is found and told below
        return [_one(compiled, value) for value in values]


def _one(compiled: Compiled, *given: Any) -> Any:
    if type(given[0]) is Failed:
        return given[0]
    try:
        return compiled.run(*given)
    except Exception as e:
        found = explain(e, compiled.table)
        said = isinstance(found.error, OperandMismatch | TypeMismatch)
        return Failed(max(found.line - 1, 0), found.text, found.sealed, said)


def _broken(doc: Broken) -> Failed:
    try:
        document.for_json(Message(doc.raw))
    except QueryError as e:
        return Failed(0, str(e), sealed=False, said=False)
    raise AssertionError("it is a document")


def field_reader(path: tuple[str, ...]) -> Callable[[Docs], list[Any]]:
    """Return a function that gives what a field holds in each document."""
    if not path:
        return list
    return partial(_field, itemgetter(path[0]), path) if len(path) == 1 else partial(_search, path)


def _field(get: Callable[[Any], Any], path: tuple[str, ...], docs: Docs) -> list[Any]:
    try:
        return list(map(get, docs))
    except (KeyError, TypeError, IndexError):
        name = path[0]
        return [doc.get(name) if type(doc) is dict else step(doc, name) for doc in docs]


def _search(path: tuple[str, ...], docs: Docs) -> list[Any]:
    return [search(doc, path) for doc in docs]
