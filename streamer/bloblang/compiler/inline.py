"""Methods that the generated code does itself, since it has the queries and maps they run."""

from __future__ import annotations

from collections.abc import Callable

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Static
from streamer.bloblang.compiler.code import HEAVY, Code, Value
from streamer.bloblang.compiler.sites import From, Prefix, PrefixElement
from streamer.bloblang.runtime import collections
from streamer.bloblang.runtime.arguments import string

Emit = Callable[[Code, tree.Node], Value]
# A comprehension is a function to Python's compiler, which thousands within one slow down.
_MANY = 128


def _elements(code: Code, node: tree.Method, left: Value, expected: str) -> tuple[str, str]:
    """Emit the list to go through and the keys when it is an object."""
    left = code.settle(left)
    if left.kind == "list":
        return left.code, "None"
    source, keys = code.name("s"), code.name("keys")
    entries = code.constant(collections.entries, "entries")
    code.emit(
        f"{source}, {keys} = ({left.code}, None) if type({left.code}) is list "
        f"else {entries}({left.code}, {expected})",
        From(annotation(node.target)),
    )
    return source, keys


def _loop(
    code: Code,
    node: tree.Method,
    source: str,
    keys: str,
    emit: Emit,
    prefix: str,
    keep: bool,
    special: bool,
) -> Value:
    """Emit a loop that collects the query's results, or the elements for which it is true."""
    query = node.arguments[0].value
    result, iterator, element = code.name(), code.name("it"), code.name("v")
    if special:
        code.doubtful.add(element)
    code.emit(f"{result} = []")
    code.emit(f"{iterator} = iter({source})")
    steps = (PrefixElement(prefix, iterator, keys), From(annotation(node.target))) if prefix else ()
    head = len(code.lines)
    with code.block(f"for {element} in {iterator}:"):
        code.scope = code.scope.inside(
            this=element,
            previous=code.scope.this,
            steps=(From(annotation(query)), *steps, *code.scope.steps)
            if prefix
            else (From(annotation(node.target)), *code.scope.steps),
        )
        with code.multiplied():
            value = emit(code, query)
        single = code.comprehensions < _MANY and len(code.lines) == head + 1
        test = value.is_true()
        if keep:
            code.emit(f"if {test}: {result}.append({element})")
        else:
            code.emit(f"{result}.append({value.code})")
    if single and code.options.inline:  # the body is one expression: a comprehension does it faster
        code.comprehensions += 1
        del code.lines[head - 2 :]
        body = f"{element} for {element} in {source} if {test}"
        if not keep:
            body = f"{value.code} for {element} in {source}"
        code.emit(f"{result} = [{body}]")
    return Value(result, special=value.special)


def _map_each(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    source, keys = _elements(code, node, left, "'array'")
    result = _loop(
        code, node, source, keys, emit, "failed to process element {}: ", False, left.special
    )
    if keys == "None" and not result.special:
        return Value(result.code, kind="list")
    settle = code.constant(collections.settle, "settle")
    if not result.special:
        text = f"{result.code} if {keys} is None else {settle}({source}, {result.code}, {keys})"
        return code.store(text)
    return code.store(f"{settle}({source}, {result.code}, {keys})")


def _filter(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    source, keys = _elements(code, node, left, "'array', 'object'")
    result = _loop(code, node, source, keys, emit, "", True, left.special)
    if keys == "None":
        return Value(result.code, special=left.special, kind="list")
    entries = code.constant(collections.of_entries, "of_entries")
    return code.store(f"{result.code} if {keys} is None else {entries}({result.code})")


def _apply(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    left = code.settle(left)
    if code.alone:
        return code.lacking("no maps were found")
    argument = node.bound.arguments[0]
    named = argument.value if isinstance(argument, Static) else ""
    with code.multiplied():
        code.copies = code.made.get(named, HEAVY)
    if isinstance(argument, Static) and argument.value in code.named_maps:
        return code.store(
            f"{code.named_maps[argument.value]}({left.code}, {code.given})", special=True
        )
    if isinstance(argument, Static):
        name = repr(argument.value)
    else:
        with code.steps(Prefix("method 'apply': failed to extract input arg 'mapping': ")):
            value = code.settle(emit(code, argument.node))
            name = code.store(f"{code.constant(string, 'as_string')}({value.code})").code
    find = code.constant(node.bound.declaration.run, "m_apply")
    code.constants.setdefault("MAPS", {})  # filled once the maps are there
    function = code.store(f"{find}(MAPS, {name})").code
    return code.store(f"{function}({left.code}, {code.given})", special=True)


METHODS: dict[str, Callable[[Code, tree.Method, Value, Emit], Value]] = {
    "apply": _apply,
    "map_each": _map_each,
    "filter": _filter,
}
