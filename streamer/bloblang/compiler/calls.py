"""Calls: arguments, queries handed to methods, functions and methods that have no shorter form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Binding, Dynamic, Query, Static
from streamer.bloblang.compiler import inline, lookups, perspective
from streamer.bloblang.compiler.code import HEAVY, Code, Value
from streamer.bloblang.compiler.lifting import lift
from streamer.bloblang.compiler.quick import quick
from streamer.bloblang.compiler.sites import From, Prefix
from streamer.bloblang.declare import Declaration
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime import arguments as converters
from streamer.bloblang.runtime import objects

Emit = Callable[[Code, tree.Node], Value]

# What a call gets of the run, by the name its declaration uses.
_RUN = {"ex": "X", "batch": "B", "meta": "meta"}
# Methods whose results for literals are small, and are quickly there.
_FOLDED = frozenset(
    """abs capitalize ceil contains floor has_prefix has_suffix index_of length lowercase number
    parse_duration parse_duration_iso8601 replace_all round string trim trim_prefix trim_suffix
    type uppercase""".split()  # noqa: SIM905 - a list of words
)
_PYTHON_TYPES = {"string": "str", "bool": "bool", "array": "list", "object": "dict"}


def takes_target(node: tree.Method) -> bool:
    """Whether a method evaluates its target itself."""
    return node.name in perspective.METHODS and perspective.applies(node)


def method_with_target(code: Code, node: tree.Method, emit: Emit) -> Value:
    """Emit a method that evaluates its target itself (`catch`, `or`, `from_all`, …)."""
    return perspective.METHODS[node.name](code, node, emit)


def function(code: Code, node: tree.Call, emit: Emit) -> Value:
    """Emit a function call."""
    code.reads("@" if "meta" in node.name else "")
    short = lookups.FUNCTIONS.get(node.name)
    if short is not None:
        value = short(code, node)
        if value is not None:
            return value
    binding: Binding = node.bound
    declaration = binding.declaration
    given = _arguments(code, binding, f"function '{node.name}'", emit)
    if node.name == "var":  # with a name that is only known now
        find = code.constant(objects.variable, "variable")
        return code.store(f"{find}({_variables(code)}(), {given[0]})")
    run = _run(code, node, declaration)
    if not declaration.binds:
        callee = code.constant(declaration.run, f"f_{declaration.name}")
        return code.store(f"{callee}({', '.join([*run, *given])})")
    return code.store(f"{_bound(code, binding, given)}({', '.join(run)})")


def _variables(code: Code) -> str:
    """Return the function that gives the values of all variables, emitted if need be."""
    code.copies += sum(code.held.values())
    if code.scope.variables is None:
        name = code.name("f")
        held = ", ".join(f"{key!r}: {variable}" for key, variable in code.variables.items())
        with code.block(f"def {name}():"):
            code.emit(f"return {{{held}}}")
        code.scope.variables = name
    return code.scope.variables


def method(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    """Emit a method call on a value."""
    folded = _folded(code, node, left)
    if folded is not None:
        return folded
    if left.known:  # what is written out looks at a variable
        left = code.store(left.code, special=left.special, kind=left.kind)
    if code.copies >= HEAVY:
        left = code.settle(left)
        code.weighed(left.code)
    short = inline.METHODS.get(node.name)
    if short is not None:
        return short(code, node, left, emit)
    left = code.settle(left)
    binding: Binding = node.bound
    declaration = binding.declaration
    given = _arguments(code, binding, f"method '{node.name}'", emit)
    run = _run(code, node, declaration)
    steps = () if declaration.own_errors else (From(annotation(node.target)),)
    if declaration.binds:
        call = f"{_bound(code, binding, given)}({', '.join([*run, left.code])})"
    else:
        callee = code.constant(declaration.run, f"m_{declaration.name}")
        call = f"{callee}({', '.join([*run, left.code, *given])})"
    text, kind = quick(code, node.name, left, binding.arguments, call)
    special = left.special or _passes_values(declaration)
    return code.store(text, *steps, special=special, kind=kind)


def _folded(code: Code, node: tree.Method, left: Value) -> Value | None:
    """Return what a method gives for a literal; None when that has to wait for the run."""
    binding: Binding = node.bound
    if not (code.options.fold and left.known and node.name in _FOLDED and binding.all_static()):
        return None
    if binding.declaration.binds:
        return None
    values = [getattr(argument, "value", None) for argument in binding.arguments]
    try:
        return Value.of(binding.declaration.run(left.literal, *values))
    except QueryError:
        return None  # it fails when it runs, with its place


def _passes_values(declaration: Declaration) -> bool:
    """Whether a method may give back what a query gave it."""
    if declaration.name == "bloblang":  # its mapping may delete, or give nothing
        return True
    return any(param.type == "query" for param in declaration.params)


def _bound(code: Code, binding: Binding, given: list[str]) -> str:
    """Return the callable that a binding function gives; made once when it can be."""
    declaration = binding.declaration
    if (
        code.options.bind
        and binding.all_static()
        and not {"site", "state"} & set(declaration.needs)
    ):
        made = declaration.run(*[getattr(a, "value", None) for a in binding.arguments])
        return code.constant(made, f"b_{declaration.name}")
    maker = code.constant(declaration.run, f"b_{declaration.name}")
    return code.store(f"{maker}({', '.join(given)})").code


def _run(code: Code, node: tree.Call | tree.Method, declaration: Declaration) -> list[str]:
    found = []
    for need in declaration.needs:
        if need == "site":
            found.append(repr(f"{code.constant(object(), 'site')}@{code.identity}"))
        elif need == "state":
            found.append(code.constant({}, "state"))
        elif need == "argument":
            found.append(code.constant(annotation(node.arguments[0].value)))
        elif need == "original":
            found.append(code.original_meta())
        elif need in ("message", "index"):
            found.append(getattr(code.scope, need))
        else:
            found.append(_RUN[need])
    return found


def _arguments(code: Code, binding: Binding, caller: str, emit: Emit) -> list[str]:
    return [_argument(code, argument, caller, emit) for argument in binding.arguments]


def _argument(code: Code, argument: Any, caller: str, emit: Emit) -> str:
    match argument:
        case Static(value=value):
            if value is None or type(value) in (bool, int):
                return repr(value)
            return code.constant(value)
        case Query(node=node):
            return query(code, node, emit, rebind=caller.startswith("method"))
        case Dynamic(node=node, param=param):
            prefix = f"{caller}: failed to extract input arg '{param.name}': "
            with code.steps(Prefix(prefix)):
                value = code.settle(emit(code, node))
                return _converted(code, value, param.type)
    raise AssertionError(argument)


def _converted(code: Code, value: Value, wanted: str) -> str:
    python = _PYTHON_TYPES.get(wanted)
    if wanted == "any" or (python is not None and value.kind == python):
        return value.code
    convert = code.constant(converters.CONVERTERS[wanted], f"as_{wanted}")
    text = f"{convert}({value.code})"
    if python is not None:
        text = f"{value.code} if type({value.code}) is {python} else {text}"
    return code.store(text).code


def query(code: Code, node: tree.Node, emit: Emit, rebind: bool = True) -> str:
    """Emit an expression as a function for a method or function to call; return its name.

    Args:
        code: where to emit it.
        node: the expression.
        emit: what emits expressions.
        rebind: whether what the function is called with becomes `this`; methods do that.
    """
    name, this = code.name("f"), code.name("v")
    begin = len(code.lines)
    with code.block(f"def {name}({this}):"):
        if rebind:
            code.scope = code.scope.inside(this=this, previous=code.scope.this, steps=())
        else:
            code.scope = code.scope.inside(steps=())
        with code.multiplied():
            code.emit(f"return {emit(code, node).code}")
    return lift(code, begin, name)
