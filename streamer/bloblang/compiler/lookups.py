"""Functions that are one look-up: document, metadata, place in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.arguments import Static
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.runtime import document, paths
from streamer.bloblang.runtime.paths import split_path


def _static(node: tree.Call) -> Any:
    argument = node.bound.arguments[0]
    return argument.value if isinstance(argument, Static) else None


def _json(code: Code, node: tree.Call) -> Value | None:
    path = _static(node)
    if path is None:
        return None
    scope = code.scope
    if scope.message == "M" and code.linked:
        name = code.changing(f"{code.constant(document.for_json, 'json_document')}(M)")
    elif scope.message == "M":
        if scope.document is None:
            name = code.name("d")
            fetch = code.constant(document.for_json, "json_document")
            code.emit(f"{name} = {fetch}(M)")
            scope.document = name
        name = scope.document
    else:
        fetch = code.constant(document.for_json, "json_document")
        name = code.store(f"{fetch}({scope.message})").code
    plain = code.constant(document.plain, "plain")
    if not path:
        return Value(f"{plain}({name})", atom=False)
    segments = split_path(path)
    if len(segments) == 1 and segments[0] != "*":
        step = code.constant(paths.step, "step")
        part = repr(segments[0])
        text = f"{name}.get({part}) if type({name}) is dict else {step}({name}, {part})"
    else:
        search = code.constant(paths.search, "search")
        text = f"{search}({name}, {code.constant(segments)})"
    return Value(f"{plain}({text})", atom=False)


def _metadata(code: Code, node: tree.Call) -> Value | None:
    key = _static(node)
    if not key:
        return None
    return Value(f"{code.original_meta()}.get({key!r})", atom=False)


def _batch_index(code: Code, node: tree.Call) -> Value:
    return Value(code.scope.index, kind="int")


def _batch_size(code: Code, node: tree.Call) -> Value:
    return Value("len(B)", atom=False, kind="int")


def _errored(code: Code, node: tree.Call) -> Value:
    return Value(f"({code.scope.message}.error is not None)", atom=False, kind="bool")


def _content(code: Code, node: tree.Call) -> Value:
    return code.store(f"{code.scope.message}.raw", kind="bytes")


FUNCTIONS: dict[str, Callable[[Code, tree.Call], Value | None]] = {
    "json": _json,
    "metadata": _metadata,
    "batch_index": _batch_index,
    "batch_size": _batch_size,
    "errored": _errored,
    "content": _content,
}
