"""Operators on two values, written out for the types that are usual.

Every form ends in a call of the operator itself (golib/operations.py), which knows all types and
all errors; what stands before it only deals with the types it names, with the same result.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.error_sites import Operands
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.operations import EXACT
from streamer.bloblang.operators import BINARY_OPERATORS

_COMPARISON_OPERATORS: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_NUMBER_KINDS: Final = ("int", "float", "number")
_SELF_COMPARABLE_TYPES: Final = frozenset((str, int, float))
_FOLDABLE_TYPES: Final = (bool, int, float, str)
_MAX_FOLDED_CHARS: Final = 1000


def emit_binary(code: Code, node: tree.Binary, left: Value, right: Value) -> Value:
    """Emit an operator; both values are atoms."""
    operator = node.operator
    if code.options.fold_constants and left.is_known and right.is_known:
        constant = _fold_constants(operator, left, right)
        if constant is not None:
            return constant
    run = BINARY_OPERATORS[operator]
    call = f"{code.add_constant(run, run.__name__)}({left.code}, {right.code})"
    site = Operands(describe_expression(node.left), describe_expression(node.right))
    kind = (
        "bool"
        if operator in _COMPARISON_OPERATORS
        else {"/": "float", "%": "int"}.get(operator, "")
    )
    if not code.options.inline:
        return code.store(call, site, kind=kind)
    if kind == "bool":
        return _emit_comparison(code, operator, left, right, call, site)
    if operator == "/":
        return code.store(_division_code(left, right, call), site, kind=kind)
    if operator == "%":
        return code.store(call, site, kind=kind)
    if operator == "+" and "str" in (left.kind, right.kind):
        return _emit_text_join(code, left, right, call, site)
    return _emit_arithmetic(code, operator, left, right, call, site)


def _fold_constants(operator: str, left: Value, right: Value) -> Value | None:
    values = left.literal, right.literal
    if any(
        type(v) not in _FOLDABLE_TYPES or (type(v) is str and len(v) > _MAX_FOLDED_CHARS)
        for v in values
    ):
        return None
    try:
        return Value.from_literal(BINARY_OPERATORS[operator](*values))
    except QueryError:
        return None  # it fails when it runs, with its place


def _type_test(kind: str, *values: Value) -> str:
    """Return Python that tests for a type, of all values that are not known to be of it."""
    tests = [f"type({v.code}) is {kind}" for v in values if v.kind != kind]
    return " and ".join(tests) or "True"


def _number_test(value: Value) -> str:
    code = value.code
    return (
        "True" if value.kind in _NUMBER_KINDS else f"type({code}) is int or type({code}) is float"
    )


def _float_literal(value: Value) -> str | None:
    """Return an integer literal as a float literal of the same value, if it has one."""
    literal = value.literal
    return f"{literal}.0" if type(literal) is int and abs(literal) <= EXACT else None


def _emit_comparison(
    code: Code, operator: str, left: Value, right: Value, call: str, site: Operands
) -> Value:
    plain = f"{left.code} {operator} {right.code}"
    both = (left.kind, right.kind)
    if both == ("str", "str") or (left.kind in _NUMBER_KINDS and right.kind in _NUMBER_KINDS):
        return Value(f"({plain})", atom=False, kind="bool")
    if all(both) or (left.is_known and right.is_known):
        return code.store(call, site, kind="bool")
    if operator in ("==", "!=") and "None" in (left.code, right.code):
        word = "is" if operator == "==" else "is not"
        return Value(f"({left.code} {word} {right.code})", atom=False, kind="bool")
    for known, other in ((right, left), (left, right)):
        if known.kind == "bool" and operator in ("==", "!="):
            word = "is" if operator == "==" else "is not"
            plain = f"{left.code} {word} {right.code}"
        if known.kind in ("str", "bool"):
            return code.store(
                f"{plain} if {_type_test(known.kind, other)} else {call}", site, kind="bool"
            )
        if known.kind in _NUMBER_KINDS:
            return code.store(
                _number_comparison(operator, left, right, known, call), site, kind="bool"
            )
    comparable = code.add_constant(_SELF_COMPARABLE_TYPES, "comparable")
    test = f"type({left.code}) is type({right.code}) and type({left.code}) in {comparable}"
    return code.store(f"{plain} if {test} else {call}", site, kind="bool")


def _number_comparison(operator: str, left: Value, right: Value, known: Value, call: str) -> str:
    """Return a comparison with a number; Python is slower when one is an int and one a float."""
    other = left if known is right else right
    plain = f"{left.code} {operator} {right.code}"
    literal = _float_literal(known)
    if literal is None:
        return f"{plain} if {_number_test(other)} else {call}"
    texts = (left.code, literal) if known is right else (literal, right.code)
    return (
        f"{plain} if {_type_test('int', other)} else "
        f"{texts[0]} {operator} {texts[1]} if {_type_test('float', other)} else {call}"
    )


def _division_code(left: Value, right: Value, call: str) -> str:
    divisor = _float_literal(right) or (
        right.code if right.is_known and right.kind == "float" else None
    )
    if divisor is not None and right.literal:
        return f"{left.code} / {divisor} if {_number_test(left)} else {call}"
    plain = f"{left.code} / {right.code}"
    # Python divides integers as floats do as long as floats hold them.
    bounds = f"0 < {right.code} <= EXACT and -EXACT <= {left.code} <= EXACT"
    return (
        f"{plain} if {_type_test('int', left, right)} and {bounds} else "
        f"{plain} if {_type_test('float', left, right)} and {right.code} else {call}"
    )


def _emit_text_join(code: Code, left: Value, right: Value, call: str, site: Operands) -> Value:
    plain = f"{left.code} + {right.code}"
    if left.kind == right.kind:
        return Value(f"({plain})", atom=False, kind="str")
    return code.store(f"{plain} if {_type_test('str', left, right)} else {call}", site, kind="str")


def _emit_arithmetic(
    code: Code, operator: str, left: Value, right: Value, call: str, site: Operands
) -> Value:
    kinds = (left.kind, right.kind)
    if any(kind and kind not in _NUMBER_KINDS for kind in kinds):
        return code.store(call, site)
    plain = f"{left.code} {operator} {right.code}"
    if kinds == ("float", "float"):
        return Value(f"({plain})", atom=False, kind="float")
    for known, other in ((right, left), (left, right)):
        if known.kind == "float" and other.kind:
            return Value(f"({plain})", atom=False, kind="float")
        if known.kind == "float":
            return code.store(f"{plain} if {_number_test(other)} else {call}", site, kind="float")
    name = code.fresh_name()
    whole = _type_test("int", left, right)
    bounded = f"INT64_MIN <= ({name} := {plain}) <= INT64_MAX"
    test = bounded if whole == "True" else f"{whole} and {bounded}"
    text = f"{name} if {test} else {_float_branch(operator, left, right)}{call}"
    if operator == "+" and kinds == ("", ""):
        text = text.removesuffix(call) + f"{plain} if {_type_test('str', left, right)} else {call}"
    code.emit(f"{name} = {text}", site)
    numeric = "number" if operator != "+" or kinds != ("", "") else ""
    return Value(name, kind="int" if kinds == ("int", "int") else numeric)


def _float_branch(operator: str, left: Value, right: Value) -> str:
    """Return the part of a conditional that computes with floats, and ends in `else`."""
    if left.kind == right.kind == "int":
        return ""
    for known, other in ((right, left), (left, right)):
        literal = _float_literal(known)
        if literal is not None:
            texts = (left.code, literal) if known is right else (literal, right.code)
            return f"{texts[0]} {operator} {texts[1]} if {_type_test('float', other)} else "
    tests = []
    if left.kind != "int":
        tests.append(f"{_type_test('float', left)} and ({_number_test(right)})")
    if right.kind != "int":
        tests.append(f"{_type_test('float', right)} and {_type_test('int', left)}")
    return f"{left.code} {operator} {right.code} if {' or '.join(tests)} else "
