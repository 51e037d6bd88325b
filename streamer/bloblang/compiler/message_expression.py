"""Compiles a row of `map_each` and `filter` for one message's value, as a function by itself.

It does for one element what a mapping's loops do for all, and fails in the same words. The steps
are told apart by the line that its errors stand on: the source is on line 1, the first step on 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.compiler.code import Code, Scope, Value
from streamer.bloblang.compiler.error_sites import Prefix, ValueOrigin
from streamer.bloblang.compiler.expressions import emit
from streamer.bloblang.compiler.program import (
    DOCUMENT_PARAMETERS,
    FULL_PARAMETERS,
    CompiledCode,
    start_code,
)

INDEX_PLACEHOLDER: Final = "\x00#\x00"
"""Stands in an error's text for the index of the element, which is not known yet."""


class DroppedElement(NamedTuple):
    """An element that a step has left out; `step` counts from 1."""

    step: int


def compile_message_expression(
    source: tree.Node | None, steps: Sequence[tree.Method], *, document_only: bool
) -> CompiledCode:
    """Compile a source and the steps that its value goes through.

    Args:
        source: an expression that looks at the message's document alone; None when the function
            is given the value itself.
        steps: calls of `map_each` and `filter`; their targets are not looked at.
        document_only: compile to `run(doc) -> value` instead of `run(B, I, M, X, meta) -> value`.

    Returns:
        A function that returns the value, or `DroppedElement`.
    """
    code, name, table = start_code("element")
    code.parameters = DOCUMENT_PARAMETERS if document_only else FULL_PARAMETERS
    code.scope = Scope(document="doc" if document_only else None)
    code.line, code.depth, code.is_standalone = 1, 0, True
    with code.block(f"def run({code.parameters}):"):
        value = Value("doc") if source is None else emit(code, source)
        for number, step in enumerate(steps, 1):
            code.line = number + 1
            value = code.store(value.code, special=value.special, kind=value.kind)
            value = _STEP_EMITTERS[step.name](code, step, value, number)
        code.emit(f"return {value.code}")
    code.emit_hoisted()
    return CompiledCode(code, name, table)


def compile_lambda(query: tree.Node) -> CompiledCode:
    """Compile a method's query to `run(value) -> result`."""
    code, name, table = start_code("query")
    code.parameters = DOCUMENT_PARAMETERS
    code.scope = Scope(this="doc")
    code.line, code.depth, code.is_standalone = 1, 0, True
    with code.block(f"def run({code.parameters}):"):
        code.emit(f"return {emit(code, query).code}")
    code.emit_hoisted()
    return CompiledCode(code, name, table)


def _emit_filter(code: Code, node: tree.Method, value: Value, number: int) -> Value:
    with code.override_scope(
        this=value.code, previous=None, steps=(ValueOrigin(describe_expression(node.target)),)
    ):
        test = emit(code, node.arguments[0].value).truth_test()
        code.emit(f"if not ({test}): return {_add_dropped_constant(code, number)}")
    return value


def _emit_map_each(code: Code, node: tree.Method, value: Value, number: int) -> Value:
    query = node.arguments[0].value
    steps = (
        ValueOrigin(describe_expression(query)),
        Prefix(f"failed to process element {INDEX_PLACEHOLDER}: "),
        ValueOrigin(describe_expression(node.target)),
    )
    with code.override_scope(this=value.code, previous=None, steps=steps), code.multiply_copies():
        result = code.ensure_atom(emit(code, query))
    if result.special:
        code.emit(f"if {result.code} is DELETED: return {_add_dropped_constant(code, number)}")
        result = code.store(f"{value.code} if {result.code} is NOTHING else {result.code}")
    return result


def _add_dropped_constant(code: Code, number: int) -> str:
    return code.add_constant(DroppedElement(number), "dropped")


_STEP_EMITTERS: Final = {"map_each": _emit_map_each, "filter": _emit_filter}
