"""Messages' values for an aggregate: an expression's value for each, taken through some steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.compiler.message_expression import compile_lambda, compile_message_expression
from streamer.bloblang.compiler.program import CompiledCode
from streamer.bloblang.diagnostics import explain_error
from streamer.bloblang.errors import OperandMismatch, QueryError, TypeMismatch
from streamer.bloblang.runtime import document
from streamer.bloblang.runtime.paths import find_or_null, find_step
from streamer.core.message import Message
from streamer.core.value import Number

Documents = Sequence[Any]


class ErrorValue(NamedTuple):
    """A message, or an element, for which there is an error instead of a value.

    Attributes:
        step: which failed, from 1; 0 for the expression itself.
        text: the error's, with `INDEX_PLACEHOLDER` for the index of an element.
        sealed: whether the text already says what the value came from.
        is_mismatch: whether it says so as long as no other words go before it.
    """

    step: int
    text: str
    sealed: bool
    is_mismatch: bool


class InvalidDocument:
    """Stands for the document of a message that is none.

    Attributes:
        raw: the message's bytes.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


@dataclass(frozen=True)
class MessageExpression:
    """An expression that looks at one message's document alone, and steps that its value takes.

    Attributes:
        path: the field, where the expression is `json()` of a path; else None.
        source: the expression.
        steps: calls of `map_each` and `filter`.
    """

    path: tuple[str, ...] | None
    source: tree.Node
    steps: tuple[tree.Method, ...]

    def evaluate(self, docs: Documents) -> list[Any]:
        """Return the value, or an `ErrorValue`, for each document or `InvalidDocument`."""
        broken = InvalidDocument in set(map(type, docs))
        if self.path is None:
            return (
                list(map(self._evaluate_document, docs))
                if broken
                else _evaluate_each(self._compiled, docs)
            )
        values = make_field_reader(self.path)(docs)
        if Number in set(map(type, values)):
            values = list(map(document.to_plain_number, values))
        if broken:
            pairs = zip(docs, values, strict=True)
            values = [
                _document_error(doc) if type(doc) is InvalidDocument else value
                for doc, value in pairs
            ]
            # A step may well take what stands for an error for a value: each is looked at.
            return (
                [_evaluate_one(self._compiled, value) for value in values] if self.steps else values
            )
        return _evaluate_each(self._compiled, values) if self.steps else values

    @cached_property
    def _compiled(self) -> CompiledCode:
        source = self.source if self.path is None else None
        return compile_message_expression(source, self.steps, document_only=True)

    @cached_property
    def _compiled_for_message(self) -> CompiledCode:
        return compile_message_expression(self.source, self.steps, document_only=False)

    def _evaluate_document(self, doc: Any) -> Any:
        if type(doc) is not InvalidDocument:
            return _evaluate_one(self._compiled, doc)
        message = Message(doc.raw)
        return _evaluate_one(self._compiled_for_message, [message], 0, message, None, {})


@dataclass(frozen=True)
class ElementQuery:
    """The query of a method for each element.

    Attributes:
        node: the method's query.
    """

    node: tree.Node

    def evaluate(self, values: Sequence[Any]) -> list[Any]:
        """Return what the query gives for each value, or `ErrorValue`."""
        return _evaluate_each(self._compiled, values)

    @cached_property
    def _compiled(self) -> CompiledCode:
        return compile_lambda(self.node)


def _evaluate_each(compiled: CompiledCode, values: Sequence[Any]) -> list[Any]:
    try:
        return list(map(compiled.run, values))
    except Exception:  # whatever one of them did: it is found and told below
        return [_evaluate_one(compiled, value) for value in values]


def _evaluate_one(compiled: CompiledCode, *arguments: Any) -> Any:
    if type(arguments[0]) is ErrorValue:
        return arguments[0]
    try:
        return compiled.run(*arguments)
    except Exception as e:
        finding = explain_error(e, compiled.table)
        is_mismatch = isinstance(finding.error, OperandMismatch | TypeMismatch)
        return ErrorValue(max(finding.line - 1, 0), finding.text, finding.sealed, is_mismatch)


def _document_error(doc: InvalidDocument) -> ErrorValue:
    try:
        document.get_json_document(Message(doc.raw))
    except QueryError as e:
        return ErrorValue(0, str(e), sealed=False, is_mismatch=False)
    raise AssertionError("it is a document")


def make_field_reader(path: tuple[str, ...]) -> Callable[[Documents], list[Any]]:
    """Return a function that gives what a field holds in each document."""
    if not path:
        return list
    return (
        partial(_read_field, itemgetter(path[0]), path)
        if len(path) == 1
        else partial(_search_each, path)
    )


def _read_field(get: Callable[[Any], Any], path: tuple[str, ...], docs: Documents) -> list[Any]:
    try:
        return list(map(get, docs))
    except (KeyError, TypeError, IndexError):
        name = path[0]
        return [doc.get(name) if type(doc) is dict else find_step(doc, name) for doc in docs]


def _search_each(path: tuple[str, ...], docs: Documents) -> list[Any]:
    return [find_or_null(doc, path) for doc in docs]
