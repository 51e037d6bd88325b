"""What becomes of one message's value in a row of `map_each` and `filter`, as a function by itself.

It does for one element what a mapping's loops do for all, and fails in the same words. The steps
are told apart by the line that its errors stand on: the source is on line 1, the first step on 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.compiler.code import Code, Scope, Value
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.compiler.program import DOCUMENT, FULL, Compiled, start
from streamer.bloblang.compiler.sites import From, Prefix

AT: Final = "\x00#\x00"
"""Stands in an error's text for the index of the element, which is not known yet."""


class Dropped(NamedTuple):
    """An element that a step has left out; `step` counts from 1."""

    step: int


def compile_element(
    source: tree.Node | None, steps: Sequence[tree.Method], *, document_only: bool
) -> Compiled:
    """Compile a source and the steps that its value goes through.

    Args:
        source: an expression that looks at the message's document alone; None when the function
            is given the value itself.
        steps: calls of `map_each` and `filter`; their targets are not looked at.
        document_only: compile to `run(doc) -> value` instead of `run(B, I, M, X, meta) -> value`.

    Returns:
        A function that returns the value, or `Dropped`.
    """
    code, name, table = start("element")
    code.given = DOCUMENT if document_only else FULL
    code.scope = Scope(document="doc" if document_only else None)
    code.line, code.depth, code.alone = 1, 0, True
    with code.block(f"def run({code.given}):"):
        value = Value("doc") if source is None else emit(code, source)
        for number, step in enumerate(steps, 1):
            code.line = number + 1
            value = code.store(value.code, special=value.special, kind=value.kind)
            value = _KINDS[step.name](code, step, value, number)
        code.emit(f"return {value.code}")
    code.put_beside()
    return Compiled(code, name, table)


def compile_lambda(query: tree.Node) -> Compiled:
    """Compile a method's query to `run(value) -> result`."""
    code, name, table = start("query")
    code.given = DOCUMENT
    code.scope = Scope(this="doc")
    code.line, code.depth, code.alone = 1, 0, True
    with code.block(f"def run({code.given}):"):
        code.emit(f"return {emit(code, query).code}")
    code.put_beside()
    return Compiled(code, name, table)


def _filter(code: Code, node: tree.Method, value: Value, number: int) -> Value:
    with code.within(this=value.code, previous=None, steps=(From(annotation(node.target)),)):
        test = emit(code, node.arguments[0].value).is_true()
        code.emit(f"if not ({test}): return {_dropped(code, number)}")
    return value


def _map_each(code: Code, node: tree.Method, value: Value, number: int) -> Value:
    query = node.arguments[0].value
    steps = (
        From(annotation(query)),
        Prefix(f"failed to process element {AT}: "),
        From(annotation(node.target)),
    )
    with code.within(this=value.code, previous=None, steps=steps), code.multiplied():
        found = code.settle(emit(code, query))
    if found.special:
        code.emit(f"if {found.code} is DELETED: return {_dropped(code, number)}")
        found = code.store(f"{value.code} if {found.code} is NOTHING else {found.code}")
    return found


def _dropped(code: Code, number: int) -> str:
    return code.constant(Dropped(number), "dropped")


_KINDS: Final = {"map_each": _map_each, "filter": _filter}
