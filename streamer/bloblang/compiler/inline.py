"""Methods that the generated code does itself, since it has the queries and maps they run."""

from __future__ import annotations

from collections.abc import Callable

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.arguments import StaticArgument
from streamer.bloblang.compiler.code import SIZE_CHECK_COPIES, Code, Value
from streamer.bloblang.compiler.error_sites import Prefix, PrefixElement, ValueOrigin
from streamer.bloblang.runtime import iteration
from streamer.bloblang.runtime.arguments import as_string

Emit = Callable[[Code, tree.Node], Value]
# A comprehension is a function to Python's compiler, which thousands within one slow down.
_MAX_COMPREHENSIONS = 128


def _emit_elements(code: Code, node: tree.Method, left: Value, expected: str) -> tuple[str, str]:
    """Emit the list to go through and the keys when it is an object."""
    left = code.ensure_atom(left)
    if left.kind == "list":
        return left.code, "None"
    source, keys = code.fresh_name("s"), code.fresh_name("keys")
    entries = code.add_constant(iteration.list_entries, "list_entries")
    code.emit(
        f"{source}, {keys} = ({left.code}, None) if type({left.code}) is list "
        f"else {entries}({left.code}, {expected})",
        ValueOrigin(describe_expression(node.target)),
    )
    return source, keys


def _emit_loop(
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
    result, iterator, element = code.fresh_name(), code.fresh_name("it"), code.fresh_name("v")
    if special:
        code.special_names.add(element)
    code.emit(f"{result} = []")
    code.emit(f"{iterator} = iter({source})")
    steps = (
        (PrefixElement(prefix, iterator, keys), ValueOrigin(describe_expression(node.target)))
        if prefix
        else ()
    )
    head = len(code.lines)
    with code.block(f"for {element} in {iterator}:"):
        code.scope = code.scope.derive(
            this=element,
            previous=code.scope.this,
            steps=(ValueOrigin(describe_expression(query)), *steps, *code.scope.steps)
            if prefix
            else (ValueOrigin(describe_expression(node.target)), *code.scope.steps),
        )
        with code.multiply_copies():
            value = emit(code, query)
        single = code.comprehensions < _MAX_COMPREHENSIONS and len(code.lines) == head + 1
        test = value.truth_test()
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


def _emit_map_each(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    source, keys = _emit_elements(code, node, left, "'array'")
    result = _emit_loop(
        code, node, source, keys, emit, "failed to process element {}: ", False, left.special
    )
    if keys == "None" and not result.special:
        return Value(result.code, kind="list")
    merge = code.add_constant(iteration.merge_results, "merge_results")
    if not result.special:
        text = f"{result.code} if {keys} is None else {merge}({source}, {result.code}, {keys})"
        return code.store(text)
    return code.store(f"{merge}({source}, {result.code}, {keys})")


def _emit_filter(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    source, keys = _emit_elements(code, node, left, "'array', 'object'")
    result = _emit_loop(code, node, source, keys, emit, "", True, left.special)
    if keys == "None":
        return Value(result.code, special=left.special, kind="list")
    entries = code.add_constant(iteration.build_object, "build_object")
    return code.store(f"{result.code} if {keys} is None else {entries}({result.code})")


def _emit_apply(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    left = code.ensure_atom(left)
    if code.is_standalone:
        return code.emit_failure("no maps were found")
    argument = node.bound.arguments[0]
    named = argument.value if isinstance(argument, StaticArgument) else ""
    with code.multiply_copies():
        code.copies = code.map_copy_counts.get(named, SIZE_CHECK_COPIES)
    if isinstance(argument, StaticArgument) and argument.value in code.named_maps:
        return code.store(
            f"{code.named_maps[argument.value]}({left.code}, {code.parameters})", special=True
        )
    if isinstance(argument, StaticArgument):
        name = repr(argument.value)
    else:
        with code.with_steps(Prefix("method 'apply': failed to extract input arg 'mapping': ")):
            value = code.ensure_atom(emit(code, argument.node))
            name = code.store(f"{code.add_constant(as_string, 'as_string')}({value.code})").code
    find = code.add_constant(node.bound.declaration.run, "m_apply")
    code.constants.setdefault("MAPS", {})  # filled once the maps are there
    function = code.store(f"{find}(MAPS, {name})").code
    return code.store(f"{function}({left.code}, {code.parameters})", special=True)


METHODS: dict[str, Callable[[Code, tree.Method, Value, Emit], Value]] = {
    "apply": _emit_apply,
    "map_each": _emit_map_each,
    "filter": _emit_filter,
}
