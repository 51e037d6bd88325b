"""Operators on two values, written out for the types that are usual.

Every form ends in a call of the operator itself (runtime/operations.py), which knows all types and
all errors; what stands before it only deals with the types it names, with the same result.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.sites import Operands
from streamer.bloblang.errors import QueryError
from streamer.bloblang.operators import BINARY
from streamer.bloblang.runtime.operations import EXACT

_COMPARED: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_NUMBERS: Final = ("int", "float", "number")
_COMPARED_ALIKE: Final = frozenset((str, int, float))
_FOLDED: Final = (bool, int, float, str)
_LONGEST: Final = 1000


def binary(code: Code, node: tree.Binary, left: Value, right: Value) -> Value:
    """Emit an operator; both values are atoms."""
    operator = node.operator
    if code.options.fold and left.known and right.known:
        folded = _folded(operator, left, right)
        if folded is not None:
            return folded
    run = BINARY[operator]
    call = f"{code.constant(run, run.__name__)}({left.code}, {right.code})"
    site = Operands(annotation(node.left), annotation(node.right))
    kind = "bool" if operator in _COMPARED else {"/": "float", "%": "int"}.get(operator, "")
    if not code.options.inline:
        return code.store(call, site, kind=kind)
    if kind == "bool":
        return _comparison(code, operator, left, right, call, site)
    if operator == "/":
        return code.store(_division(left, right, call), site, kind=kind)
    if operator == "%":
        return code.store(call, site, kind=kind)
    if operator == "+" and "str" in (left.kind, right.kind):
        return _joined(code, left, right, call, site)
    return _arithmetic(code, operator, left, right, call, site)


def _folded(operator: str, left: Value, right: Value) -> Value | None:
    values = left.literal, right.literal
    if any(type(v) not in _FOLDED or (type(v) is str and len(v) > _LONGEST) for v in values):
        return None
    try:
        return Value.of(BINARY[operator](*values))
    except QueryError:
        return None  # it fails when it runs, with its place


def _is(kind: str, *values: Value) -> str:
    """Return Python that tests for a type, of all values that are not known to be of it."""
    tests = [f"type({v.code}) is {kind}" for v in values if v.kind != kind]
    return " and ".join(tests) or "True"


def _is_number(value: Value) -> str:
    code = value.code
    return "True" if value.kind in _NUMBERS else f"type({code}) is int or type({code}) is float"


def _as_float(value: Value) -> str | None:
    """Return an integer literal as a float literal of the same value, if it has one."""
    literal = value.literal
    return f"{literal}.0" if type(literal) is int and abs(literal) <= EXACT else None


def _comparison(
    code: Code, operator: str, left: Value, right: Value, call: str, site: Operands
) -> Value:
    plain = f"{left.code} {operator} {right.code}"
    both = (left.kind, right.kind)
    if both == ("str", "str") or (left.kind in _NUMBERS and right.kind in _NUMBERS):
        return Value(f"({plain})", atom=False, kind="bool")
    if all(both) or (left.known and right.known):
        return code.store(call, site, kind="bool")
    if operator in ("==", "!=") and "None" in (left.code, right.code):
        word = "is" if operator == "==" else "is not"
        return Value(f"({left.code} {word} {right.code})", atom=False, kind="bool")
    for known, other in ((right, left), (left, right)):
        if known.kind == "bool" and operator in ("==", "!="):
            word = "is" if operator == "==" else "is not"
            plain = f"{left.code} {word} {right.code}"
        if known.kind in ("str", "bool"):
            return code.store(f"{plain} if {_is(known.kind, other)} else {call}", site, kind="bool")
        if known.kind in _NUMBERS:
            return code.store(_against(operator, left, right, known, call), site, kind="bool")
    alike = code.constant(_COMPARED_ALIKE, "alike")
    test = f"type({left.code}) is type({right.code}) and type({left.code}) in {alike}"
    return code.store(f"{plain} if {test} else {call}", site, kind="bool")


def _against(operator: str, left: Value, right: Value, known: Value, call: str) -> str:
    """Return a comparison with a number; Python is slower when one is an int and one a float."""
    other = left if known is right else right
    plain = f"{left.code} {operator} {right.code}"
    literal = _as_float(known)
    if literal is None:
        return f"{plain} if {_is_number(other)} else {call}"
    texts = (left.code, literal) if known is right else (literal, right.code)
    return (
        f"{plain} if {_is('int', other)} else "
        f"{texts[0]} {operator} {texts[1]} if {_is('float', other)} else {call}"
    )


def _division(left: Value, right: Value, call: str) -> str:
    divisor = _as_float(right) or (right.code if right.known and right.kind == "float" else None)
    if divisor is not None and right.literal:
        return f"{left.code} / {divisor} if {_is_number(left)} else {call}"
    plain = f"{left.code} / {right.code}"
    # Python divides integers as floats do as long as floats hold them.
    bounds = f"0 < {right.code} <= EXACT and -EXACT <= {left.code} <= EXACT"
    return (
        f"{plain} if {_is('int', left, right)} and {bounds} else "
        f"{plain} if {_is('float', left, right)} and {right.code} else {call}"
    )


def _joined(code: Code, left: Value, right: Value, call: str, site: Operands) -> Value:
    plain = f"{left.code} + {right.code}"
    if left.kind == right.kind:
        return Value(f"({plain})", atom=False, kind="str")
    return code.store(f"{plain} if {_is('str', left, right)} else {call}", site, kind="str")


def _arithmetic(
    code: Code, operator: str, left: Value, right: Value, call: str, site: Operands
) -> Value:
    kinds = (left.kind, right.kind)
    if any(kind and kind not in _NUMBERS for kind in kinds):
        return code.store(call, site)
    plain = f"{left.code} {operator} {right.code}"
    if kinds == ("float", "float"):
        return Value(f"({plain})", atom=False, kind="float")
    for known, other in ((right, left), (left, right)):
        if known.kind == "float" and other.kind:
            return Value(f"({plain})", atom=False, kind="float")
        if known.kind == "float":
            return code.store(f"{plain} if {_is_number(other)} else {call}", site, kind="float")
    name = code.name()
    whole = _is("int", left, right)
    bounded = f"INT64_MIN <= ({name} := {plain}) <= INT64_MAX"
    test = bounded if whole == "True" else f"{whole} and {bounded}"
    text = f"{name} if {test} else {_with_floats(operator, left, right)}{call}"
    if operator == "+" and kinds == ("", ""):
        text = text.removesuffix(call) + f"{plain} if {_is('str', left, right)} else {call}"
    code.emit(f"{name} = {text}", site)
    numeric = "number" if operator != "+" or kinds != ("", "") else ""
    return Value(name, kind="int" if kinds == ("int", "int") else numeric)


def _with_floats(operator: str, left: Value, right: Value) -> str:
    """Return the part of a conditional that computes with floats, and ends in `else`."""
    if left.kind == right.kind == "int":
        return ""
    for known, other in ((right, left), (left, right)):
        literal = _as_float(known)
        if literal is not None:
            texts = (left.code, literal) if known is right else (literal, right.code)
            return f"{texts[0]} {operator} {texts[1]} if {_is('float', other)} else "
    tests = []
    if left.kind != "int":
        tests.append(f"{_is('float', left)} and ({_is_number(right)})")
    if right.kind != "int":
        tests.append(f"{_is('float', right)} and {_is('int', left)}")
    return f"{left.code} {operator} {right.code} if {' or '.join(tests)} else "
