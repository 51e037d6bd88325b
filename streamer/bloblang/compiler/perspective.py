"""Methods that decide how their target is evaluated: against errors, and for other messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Dynamic, Static
from streamer.bloblang.compiler import branches
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.sites import From, Prefix
from streamer.bloblang.runtime import document, paths
from streamer.bloblang.runtime.arguments import CONVERTERS, integer
from streamer.bloblang.runtime.paths import split_path
from streamer.value import Number

Emit = Callable[[Code, tree.Node], Value]


def applies(node: tree.Method) -> bool:
    """Whether the call is of the kind that needs its target unevaluated."""
    if node.name in ("bool", "number", "timestamp"):
        return bool(node.arguments)
    return True


def _fallback(node: tree.Method) -> tree.Node:
    return node.arguments[0].value


def _catch(code: Code, node: tree.Method, emit: Emit) -> Value:
    return branches.catch(code, node.target, _fallback(node), emit)


def _or(code: Code, node: tree.Method, emit: Emit) -> Value:
    return branches.coalesce(code, [node.target], _fallback(node), emit)


def _or_default(code: Code, node: tree.Method, emit: Emit) -> Value:
    """Emit a conversion whose argument is given back when anything fails."""
    argument = node.bound.arguments[0]
    if isinstance(argument, Static):
        default = code.constant(argument.value)
    else:
        prefix = f"method '{node.name}': failed to extract input arg 'default': "
        convert = code.constant(CONVERTERS[argument.param.type], f"as_{argument.param.type}")
        with code.steps(Prefix(prefix)):
            value = code.settle(emit(code, argument.node))
            default = code.store(f"{convert}({value.code})").code
    merged = Value(code.name())
    convert = code.constant(node.bound.declaration.run, f"m_{node.name}")
    with code.block("try:"):
        target = code.settle(emit(code, node.target))
        code.emit(f"{merged.code} = {convert}({target.code}, None)", From(annotation(node.target)))
    with code.block("except Exception:"):
        code.emit(f"{merged.code} = {default}")
    return merged


def _from(code: Code, node: tree.Method, emit: Emit) -> Value:
    argument = node.bound.arguments[0]
    if isinstance(argument, Dynamic):
        convert = code.constant(integer, "as_integer")
        with code.steps(Prefix("method 'from': failed to extract input arg 'index': ")):
            value = code.settle(emit(code, argument.node))
            index = code.store(f"{convert}({value.code})").code
    else:
        index = repr(argument.value)
    pick = code.constant(document.at, "at")
    message = code.store(f"{pick}(B, {index})").code
    with code.within(message=message, index=index):
        return code.settle(emit(code, node.target))


def _from_all(code: Code, node: tree.Method, emit: Emit) -> Value:
    target = node.target
    if isinstance(target, tree.Call) and target.name == "json":
        argument = target.bound.arguments[0]
        if isinstance(argument, Static):
            return _field_of_all(code, argument.value)
    result, message, index = code.name(), code.name("m"), code.name("i")
    code.emit(f"{result} = []")
    with code.block(f"for {index}, {message} in enumerate(B):"):
        code.scope = code.scope.inside(message=message, index=index)
        value = emit(code, target)
        code.emit(f"{result}.append({value.code})")
    # What is deleted stays in the list, and what takes it out of there is deleted in turn.
    return Value(result, special=value.special, kind="list")


def _documents(code: Code) -> str:
    if code.scope.documents is None:
        fetch = code.constant(document.of_batch, "documents")
        code.scope.documents = code.store(f"{fetch}(B)").code
    return code.scope.documents


def _field_of_all(code: Code, path: str) -> Value:
    """Emit `json("path").from_all()`: a field of the batch's documents, or a search in each."""
    documents = _documents(code)
    segments: Any = split_path(path) if path else ()
    if len(segments) == 1 and segments[0] != "*":
        field = code.constant(document.field_of_batch, "field")
        return code.store(f"{field}(B, {documents}, {segments[0]!r})", kind="list")
    found = code.name("v")
    number = code.constant(Number, "Number")
    search = code.constant(paths.search, "search")
    text = (
        f"[{found} if type({found} := {search}(d, {code.constant(segments)})) is not {number} "
        f"else float({found}) for d in {documents}]"
    )
    return code.store(text, kind="list")


METHODS: dict[str, Callable[[Code, tree.Method, Emit], Value]] = {
    "catch": _catch,
    "or": _or,
    "bool": _or_default,
    "number": _or_default,
    "timestamp": _or_default,
    "from": _from,
    "from_all": _from_all,
}
