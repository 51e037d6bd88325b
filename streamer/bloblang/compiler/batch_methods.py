"""Methods that decide how their target is evaluated: against errors, and for other messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.arguments import DynamicArgument, StaticArgument
from streamer.bloblang.compiler import branches
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.error_sites import Prefix, ValueOrigin
from streamer.bloblang.runtime import document, paths
from streamer.bloblang.runtime.arguments import CONVERTERS, as_integer
from streamer.bloblang.runtime.paths import split_path
from streamer.core.value import Number

Emit = Callable[[Code, tree.Node], Value]


def takes_unevaluated_target(node: tree.Method) -> bool:
    """Whether the call is of the kind that needs its target unevaluated."""
    if node.name in ("bool", "number", "timestamp"):
        return bool(node.arguments)
    return True


def _fallback_argument(node: tree.Method) -> tree.Node:
    return node.arguments[0].value


def _emit_catch(code: Code, node: tree.Method, emit: Emit) -> Value:
    return branches.emit_catch(code, node.target, _fallback_argument(node), emit)


def _emit_or(code: Code, node: tree.Method, emit: Emit) -> Value:
    return branches.emit_coalesce(code, [node.target], _fallback_argument(node), emit)


def _emit_or_default(code: Code, node: tree.Method, emit: Emit) -> Value:
    """Emit a conversion that returns its argument when anything fails."""
    argument = node.bound.arguments[0]
    if isinstance(argument, StaticArgument):
        default = code.add_constant(argument.value)
    else:
        prefix = f"method '{node.name}': failed to extract input arg 'default': "
        convert = code.add_constant(CONVERTERS[argument.param.type], f"as_{argument.param.type}")
        with code.with_steps(Prefix(prefix)):
            value = code.ensure_atom(emit(code, argument.node))
            default = code.store(f"{convert}({value.code})").code
    merged = Value(code.fresh_name())
    convert = code.add_constant(node.bound.declaration.run, f"m_{node.name}")
    with code.block("try:"):
        target = code.ensure_atom(emit(code, node.target))
        code.emit(
            f"{merged.code} = {convert}({target.code}, None)",
            ValueOrigin(describe_expression(node.target)),
        )
    with code.block("except Exception:"):
        code.emit(f"{merged.code} = {default}")
    return merged


def _emit_from(code: Code, node: tree.Method, emit: Emit) -> Value:
    argument = node.bound.arguments[0]
    if isinstance(argument, DynamicArgument):
        convert = code.add_constant(as_integer, "as_integer")
        with code.with_steps(Prefix("method 'from': failed to extract input arg 'index': ")):
            value = code.ensure_atom(emit(code, argument.node))
            index = code.store(f"{convert}({value.code})").code
    else:
        index = repr(argument.value)
    pick = code.add_constant(document.get_message, "at")
    message = code.store(f"{pick}(B, {index})").code
    with code.override_scope(message=message, index=index):
        return code.ensure_atom(emit(code, node.target))


def _emit_from_all(code: Code, node: tree.Method, emit: Emit) -> Value:
    target = node.target
    if isinstance(target, tree.Call) and target.name == "json":
        argument = target.bound.arguments[0]
        if isinstance(argument, StaticArgument):
            return _emit_field_of_all(code, argument.value)
    result, message, index = code.fresh_name(), code.fresh_name("m"), code.fresh_name("i")
    code.emit(f"{result} = []")
    with code.block(f"for {index}, {message} in enumerate(B):"):
        code.scope = code.scope.derive(message=message, index=index)
        value = emit(code, target)
        code.emit(f"{result}.append({value.code})")
    # What is deleted stays in the list, and what takes it out of there is deleted in turn.
    return Value(result, special=value.special, kind="list")


def _emit_documents(code: Code) -> str:
    if code.scope.documents is None:
        fetch = code.add_constant(document.get_batch_documents, "documents")
        code.scope.documents = code.store(f"{fetch}(B)").code
    return code.scope.documents


def _emit_field_of_all(code: Code, path: str) -> Value:
    """Emit `json("path").from_all()`: a field of the batch's documents, or a search in each."""
    documents = _emit_documents(code)
    segments: Any = split_path(path) if path else ()
    if len(segments) == 1 and segments[0] != "*":
        field = code.add_constant(document.get_batch_field, "field")
        return code.store(f"{field}(B, {documents}, {segments[0]!r})", kind="list")
    value = code.fresh_name("v")
    number = code.add_constant(Number, "Number")
    search = code.add_constant(paths.find_or_null, "search")
    text = (
        f"[{value} if type({value} := {search}(d, {code.add_constant(segments)})) is not {number} "
        f"else float({value}) for d in {documents}]"
    )
    return code.store(text, kind="list")


METHODS: dict[str, Callable[[Code, tree.Method, Emit], Value]] = {
    "catch": _emit_catch,
    "or": _emit_or,
    "bool": _emit_or_default,
    "number": _emit_or_default,
    "timestamp": _emit_or_default,
    "from": _emit_from,
    "from_all": _emit_from_all,
}
