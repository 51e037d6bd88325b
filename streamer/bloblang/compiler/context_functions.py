"""Functions that are one look-up: document, metadata, place in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.arguments import StaticArgument
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.runtime import document, paths
from streamer.bloblang.runtime.paths import split_path


def _static_argument(node: tree.Call) -> Any:
    argument = node.bound.arguments[0]
    return argument.value if isinstance(argument, StaticArgument) else None


def _emit_json(code: Code, node: tree.Call) -> Value | None:
    path = _static_argument(node)
    if path is None:
        return None
    scope = code.scope
    if scope.message == "M" and code.this_follows_root:
        name = code.emit_mutated_document(
            f"{code.add_constant(document.get_json_document, 'json_document')}(M)"
        )
    elif scope.message == "M":
        if scope.document is None:
            name = code.fresh_name("d")
            fetch = code.add_constant(document.get_json_document, "json_document")
            code.emit(f"{name} = {fetch}(M)")
            scope.document = name
        name = scope.document
    else:
        fetch = code.add_constant(document.get_json_document, "json_document")
        name = code.store(f"{fetch}({scope.message})").code
    plain = code.add_constant(document.to_plain_number, "plain")
    if not path:
        return Value(f"{plain}({name})", atom=False)
    segments = split_path(path)
    if len(segments) == 1 and segments[0] != "*":
        step = code.add_constant(paths.find_step, "step")
        part = repr(segments[0])
        text = f"{name}.get({part}) if type({name}) is dict else {step}({name}, {part})"
    else:
        search = code.add_constant(paths.find_or_null, "search")
        text = f"{search}({name}, {code.add_constant(segments)})"
    return Value(f"{plain}({text})", atom=False)


def _emit_metadata(code: Code, node: tree.Call) -> Value | None:
    key = _static_argument(node)
    if not key:
        return None
    return Value(f"{code.original_meta()}.get({key!r})", atom=False)


def _emit_batch_index(code: Code, node: tree.Call) -> Value:
    return Value(code.scope.index, kind="int")


def _emit_batch_size(code: Code, node: tree.Call) -> Value:
    return Value("len(B)", atom=False, kind="int")


def _emit_errored(code: Code, node: tree.Call) -> Value:
    return Value(f"({code.scope.message}.error is not None)", atom=False, kind="bool")


def _emit_content(code: Code, node: tree.Call) -> Value:
    return code.store(f"{code.scope.message}.raw", kind="bytes")


FUNCTIONS: dict[str, Callable[[Code, tree.Call], Value | None]] = {
    "json": _emit_json,
    "metadata": _emit_metadata,
    "batch_index": _emit_batch_index,
    "batch_size": _emit_batch_size,
    "errored": _emit_errored,
    "content": _emit_content,
}
