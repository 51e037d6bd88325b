"""Calls: arguments, queries handed to methods, functions and methods that have no shorter form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.arguments import CallBinding, DynamicArgument, QueryArgument, StaticArgument
from streamer.bloblang.compiler import batch_methods, context_functions, inline
from streamer.bloblang.compiler.code import SIZE_CHECK_COPIES, Code, Value
from streamer.bloblang.compiler.error_sites import Prefix, ValueOrigin
from streamer.bloblang.compiler.fast_paths import build_fast_path
from streamer.bloblang.compiler.hoisting import hoist
from streamer.bloblang.declare import Declaration
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime import arguments as converters
from streamer.bloblang.runtime import checks

Emit = Callable[[Code, tree.Node], Value]

# What a call gets of the run, by the name its declaration uses.
_RUN_VARIABLES = {"ex": "X", "batch": "B", "meta": "meta"}
# Methods whose results for literals are small, and are quickly there.
_FOLDABLE_METHODS = frozenset(
    """abs capitalize ceil contains floor has_prefix has_suffix index_of length lowercase number
    parse_duration parse_duration_iso8601 replace_all round string trim trim_prefix trim_suffix
    type uppercase""".split()  # noqa: SIM905 - a list of words
)
_PYTHON_TYPES = {"string": "str", "bool": "bool", "array": "list", "object": "dict"}


def takes_target(node: tree.Method) -> bool:
    """Whether a method evaluates its target itself."""
    return node.name in batch_methods.METHODS and batch_methods.takes_unevaluated_target(node)


def emit_method_with_target(code: Code, node: tree.Method, emit: Emit) -> Value:
    """Emit a method that evaluates its target itself (`catch`, `or`, `from_all`, …)."""
    return batch_methods.METHODS[node.name](code, node, emit)


def emit_call(code: Code, node: tree.Call, emit: Emit) -> Value:
    """Emit a function call."""
    code.count_read("@" if "meta" in node.name else "")
    short = context_functions.FUNCTIONS.get(node.name)
    if short is not None:
        value = short(code, node)
        if value is not None:
            return value
    binding: CallBinding = node.bound
    declaration = binding.declaration
    arguments = _emit_arguments(code, binding, f"function '{node.name}'", emit)
    if node.name == "var":  # with a name that is only known now
        find = code.add_constant(checks.get_variable, "variable")
        return code.store(f"{find}({_emit_variables_function(code)}(), {arguments[0]})")
    run = _run_arguments(code, node, declaration)
    if not declaration.binds:
        callee = code.add_constant(declaration.run, f"f_{declaration.name}")
        return code.store(f"{callee}({', '.join([*run, *arguments])})")
    return code.store(f"{_emit_bound_callable(code, binding, arguments)}({', '.join(run)})")


def _emit_variables_function(code: Code) -> str:
    """Return the function that gives the values of all variables, emitted if need be."""
    code.copies += sum(code.copy_counts.values())
    if code.scope.variables is None:
        name = code.fresh_name("f")
        entries = ", ".join(f"{key!r}: {variable}" for key, variable in code.variables.items())
        with code.block(f"def {name}():"):
            code.emit(f"return {{{entries}}}")
        code.scope.variables = name
    return code.scope.variables


def emit_method(code: Code, node: tree.Method, left: Value, emit: Emit) -> Value:
    """Emit a method call on a value."""
    constant = _fold_method(code, node, left)
    if constant is not None:
        return constant
    if left.is_known:  # what is written out looks at a variable
        left = code.store(left.code, special=left.special, kind=left.kind)
    if code.copies >= SIZE_CHECK_COPIES:
        left = code.ensure_atom(left)
        code.emit_size_check(left.code)
    short = inline.METHODS.get(node.name)
    if short is not None:
        return short(code, node, left, emit)
    left = code.ensure_atom(left)
    binding: CallBinding = node.bound
    declaration = binding.declaration
    arguments = _emit_arguments(code, binding, f"method '{node.name}'", emit)
    run = _run_arguments(code, node, declaration)
    steps = () if declaration.own_errors else (ValueOrigin(describe_expression(node.target)),)
    if declaration.binds:
        call = f"{_emit_bound_callable(code, binding, arguments)}({', '.join([*run, left.code])})"
    else:
        callee = code.add_constant(declaration.run, f"m_{declaration.name}")
        call = f"{callee}({', '.join([*run, left.code, *arguments])})"
    text, kind = build_fast_path(code, node.name, left, binding.arguments, call)
    special = left.special or _may_return_special(declaration)
    return code.store(text, *steps, special=special, kind=kind)


def _fold_method(code: Code, node: tree.Method, left: Value) -> Value | None:
    """Return what a method gives for a literal; None when that has to wait for the run."""
    binding: CallBinding = node.bound
    if not (
        code.options.fold_constants
        and left.is_known
        and node.name in _FOLDABLE_METHODS
        and binding.is_static()
    ):
        return None
    if binding.declaration.binds:
        return None
    values = [getattr(argument, "value", None) for argument in binding.arguments]
    try:
        return Value.from_literal(binding.declaration.run(left.literal, *values))
    except QueryError:
        return None  # it fails when it runs, with its place


def _may_return_special(declaration: Declaration) -> bool:
    """Whether a method may return what a query gave it."""
    if declaration.name == "bloblang":  # its mapping may delete, or give nothing
        return True
    return any(param.type == "query" for param in declaration.params)


def _emit_bound_callable(code: Code, binding: CallBinding, arguments: list[str]) -> str:
    """Return the callable that a binding function gives; made once when it can be."""
    declaration = binding.declaration
    if (
        code.options.bind_once
        and binding.is_static()
        and not {"site", "state"} & set(declaration.needs)
    ):
        bound = declaration.run(*[getattr(a, "value", None) for a in binding.arguments])
        return code.add_constant(bound, f"b_{declaration.name}")
    maker = code.add_constant(declaration.run, f"b_{declaration.name}")
    return code.store(f"{maker}({', '.join(arguments)})").code


def _run_arguments(
    code: Code, node: tree.Call | tree.Method, declaration: Declaration
) -> list[str]:
    arguments = []
    for need in declaration.needs:
        if need == "site":
            arguments.append(repr(f"{code.add_constant(object(), 'site')}@{code.identity}"))
        elif need == "state":
            arguments.append(code.add_constant({}, "state"))
        elif need == "argument":
            arguments.append(code.add_constant(describe_expression(node.arguments[0].value)))
        elif need == "original":
            arguments.append(code.original_meta())
        elif need in ("message", "index"):
            arguments.append(getattr(code.scope, need))
        elif need == "call_name":
            continue  # it is the first of the call's own arguments
        else:
            arguments.append(_RUN_VARIABLES[need])
    return arguments


def _emit_arguments(code: Code, binding: CallBinding, caller: str, emit: Emit) -> list[str]:
    return [_emit_argument(code, argument, caller, emit) for argument in binding.arguments]


def _emit_argument(code: Code, argument: Any, caller: str, emit: Emit) -> str:
    match argument:
        case StaticArgument(value=value):
            if value is None or type(value) in (bool, int):
                return repr(value)
            return code.add_constant(value)
        case QueryArgument(node=node):
            rebind = caller.startswith("method") or isinstance(node, tree.Lambda)
            return emit_query(code, node, emit, rebind)
        case DynamicArgument(node=node, param=param):
            prefix = f"{caller}: failed to extract input arg '{param.name}': "
            with code.with_steps(Prefix(prefix)):
                value = code.ensure_atom(emit(code, node))
                return _emit_conversion(code, value, param.type)
    raise AssertionError(argument)


def _emit_conversion(code: Code, value: Value, type_name: str) -> str:
    python = _PYTHON_TYPES.get(type_name)
    if type_name == "any" or (python is not None and value.kind == python):
        return value.code
    convert = code.add_constant(converters.CONVERTERS[type_name], f"as_{type_name}")
    text = f"{convert}({value.code})"
    if python is not None:
        text = f"{value.code} if type({value.code}) is {python} else {text}"
    return code.store(text).code


def emit_query(code: Code, node: tree.Node, emit: Emit, rebind: bool = True) -> str:
    """Emit an expression as a function for a method or function to call; return its name.

    Args:
        code: where to emit it.
        node: the expression.
        emit: what emits expressions.
        rebind: whether what the function is called with becomes `this`; methods do that.
    """
    name, this = code.fresh_name("f"), code.fresh_name("v")
    begin = len(code.lines)
    with code.block(f"def {name}({this}):"):
        if rebind:
            code.scope = code.scope.derive(this=this, previous=code.scope.this, steps=())
        else:
            code.scope = code.scope.derive(steps=())
        with code.multiply_copies():
            code.emit(f"return {emit(code, node).code}")
    return hoist(code, begin, name)
