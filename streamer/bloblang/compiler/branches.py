"""Expressions that evaluate only what they need: `if`, `match`, `|`, `&&`, `||`, catch and or."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.error_sites import Condition, Prefix
from streamer.bloblang.golib import operations
from streamer.bloblang.runtime import checks, document
from streamer.core.value import DELETED, NOTHING

Emit = Callable[[Code, tree.Node], Value]
# Up to so many arms are nested in each other; more become a loop that is left.
_MAX_NESTED_ARMS = 4


def _emit_merged(code: Code, name: str, value: Value, merged: Value) -> None:
    code.emit(f"{name} = {value.code}")
    merged.special = merged.special or value.special


def emit_condition(
    code: Code, node: tree.Node, check: Callable[..., bool], prefix: str, emit: Emit
) -> str:
    """Emit a condition and return Python that is true when it holds.

    An error inside the condition gets the prefix; a value that is no boolean does not.
    """
    with code.with_steps(Prefix(prefix)):
        value = emit(code, node)
        if value.kind != "bool":
            value = code.ensure_atom(value)
    if value.kind == "bool":
        return value.code
    test = code.add_constant(check, check.__name__)
    site = Condition(describe_expression(node), isinstance(node, tree.Path | tree.Get))
    text = f"{value.code} if type({value.code}) is bool else {test}({value.code})"
    return code.store(text, site, kind="bool").code


def emit_cascade(
    code: Code,
    count: int,
    test: Callable[[int], str],
    body: Callable[[int], None],
    last: Callable[[], None],
) -> None:
    """Emit arms of which the first that fits is taken.

    Args:
        code: where to.
        count: how many arms there are.
        test: emits what an arm tests and returns Python for whether it fits.
        body: emits what an arm does.
        last: emits what is done when none fits.
    """
    if count <= _MAX_NESTED_ARMS:
        _emit_nested_arms(code, 0, count, test, body, last)
        return
    # Python's own compiler gives up on a hundred levels of indentation.
    with code.block("while True:"):
        for at in range(count):
            with code.block(f"if {test(at)}:"):
                body(at)
                code.emit("break")
        last()
        code.emit("break")


def _emit_nested_arms(
    code: Code,
    at: int,
    count: int,
    test: Callable[[int], str],
    body: Callable[[int], None],
    last: Callable[[], None],
) -> None:
    if at == count:
        last()
        return
    with code.block(f"if {test(at)}:"):
        body(at)
    with code.block("else:"):
        _emit_nested_arms(code, at + 1, count, test, body, last)


def emit_if(code: Code, node: tree.If, emit: Emit) -> Value:
    """Emit an `if` expression."""
    merged = Value(code.fresh_name())

    def test(at: int) -> str:
        prefix = f"failed to check if condition {at}: " if at else "failed to check if condition: "
        return emit_condition(code, node.branches[at][0], checks.check_condition, prefix, emit)

    def last() -> None:
        none = Value("NOTHING", special=True)
        value = emit(code, node.otherwise) if node.otherwise is not None else none
        _emit_merged(code, merged.code, value, merged)

    def body(at: int) -> None:
        _emit_merged(code, merged.code, emit(code, node.branches[at][1]), merged)

    emit_cascade(code, len(node.branches), test, body, last)
    return merged


def emit_match(code: Code, node: tree.Match, emit: Emit) -> Value:
    """Emit a `match` expression."""
    if node.subject is not None:
        subject = emit(code, node.subject)
        # A literal gets a variable as well: what is written out looks at its type.
        subject = code.store(subject.code, special=subject.special, kind=subject.kind)
    else:
        subject = Value(code.scope.this or _emit_document_or_null(code))
    merged = Value(code.fresh_name())
    # What stands behind `_` is never reached.
    arms = list(itertools.takewhile(lambda case: case[0] is not None, node.cases))

    def test(at: int) -> str:
        with code.with_steps(Prefix(f"failed to check match case {at}: ")):
            case = arms[at][0]
            assert case is not None
            return _case_test(code, case, subject, emit)

    def body(at: int) -> None:
        _emit_merged(code, merged.code, emit(code, arms[at][1]), merged)

    def last() -> None:
        none = Value("NOTHING", special=True)
        rest = node.cases[len(arms) :]
        _emit_merged(code, merged.code, emit(code, rest[0][1]) if rest else none, merged)

    with code.multiply_copies(), code.override_scope(this=subject.code, previous=code.scope.this):
        emit_cascade(code, len(arms), test, body, last)
    return merged


def _emit_document_or_null(code: Code) -> str:
    if code.this_follows_root:
        code.owned_paths, code.is_root_copied = set(), False
        return code.store("None if D is NOTHING else D").code
    if code.scope.document is not None:
        return code.scope.document
    return code.store(
        f"{code.add_constant(document.get_document_or_null, 'document_or_null')}(M)"
    ).code


def _case_test(code: Code, test: tree.Node, subject: Value, emit: Emit) -> str:
    """Return Python for whether a case fits: a literal is compared, a query must give true."""
    if not isinstance(test, tree.Literal):
        value = emit(code, test)
        return value.truth_test()
    if test.value is DELETED or test.value is NOTHING:
        return "False"
    same = code.add_constant(operations.is_same, "same")
    expected = emit(code, test)
    if expected.kind in ("str", "int"):
        return (
            f"({subject.code} == {expected.code} if type({subject.code}) is {expected.kind} "
            f"else {same}({subject.code}, {expected.code}))"
        )
    return f"{same}({subject.code}, {expected.code})"


def emit_chain(code: Code, node: tree.Chain, emit: Emit) -> Value:
    """Emit operands joined by `|`, or by `&&` and `||`."""
    if node.operators[0] == "|":
        *operands, last = node.operands
        return emit_coalesce(code, operands, last, emit)
    return _emit_logic(code, node, emit)


def emit_coalesce(code: Code, operands: list[tree.Node], last: tree.Node, emit: Emit) -> Value:
    """Emit: the first operand that neither fails nor is null, else the last one."""
    merged = Value(code.fresh_name())
    if len(operands) <= _MAX_NESTED_ARMS:
        _emit_coalesce_arms(code, operands, last, merged, emit)
        return merged

    def test(at: int) -> str:
        return f"not ({_emit_try(code, operands[at], merged.code, emit)})"

    def rest() -> None:
        _emit_merged(code, merged.code, emit(code, last), merged)

    emit_cascade(code, len(operands), test, lambda at: None, rest)
    return merged


def _emit_coalesce_arms(
    code: Code, operands: list[tree.Node], last: tree.Node, merged: Value, emit: Emit
) -> None:
    if not operands:
        _emit_merged(code, merged.code, emit(code, last), merged)
        return
    with code.block(f"if {_emit_try(code, operands[0], merged.code, emit)}:"):
        _emit_coalesce_arms(code, operands[1:], last, merged, emit)


def _emit_try(code: Code, node: tree.Node, name: str, emit: Emit) -> str:
    """Emit an operand's value into a variable; return Python for whether there is none."""
    start = len(code.lines)
    with code.block("try:"):
        value = emit(code, node)
        can_fail = len(code.lines) > start + 1
        if can_fail:
            code.emit(f"{name} = {value.code}")
    if can_fail:
        with code.block("except Exception:"):
            code.emit(f"{name} = None")
    else:  # nothing was emitted that could fail: no need to try
        code.lines.pop()
        code.emit(f"{name} = {value.code}")
    absent = f"{name} is None"
    return f"{absent} or {name} is DELETED or {name} is NOTHING" if value.special else absent


def _emit_logic(code: Code, node: tree.Chain, emit: Emit) -> Value:
    """Emit `&&` and `||`, which bind alike and are decided from the left."""
    name = code.fresh_name()
    code.emit(f"{name} = {_emit_boolean(code, node.operands[0], emit)}")
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        with code.block(f"if {name}:" if operator == "&&" else f"if not {name}:"):
            code.emit(f"{name} = {_emit_boolean(code, operand, emit)}")
    return Value(name, kind="bool")


def _emit_boolean(code: Code, node: tree.Node, emit: Emit) -> str:
    value = emit(code, node)
    if value.kind == "bool":
        return value.code
    value = code.ensure_atom(value)
    check = code.add_constant(checks.check_boolean, "boolean")
    text = f"{value.code} if type({value.code}) is bool else {check}({value.code})"
    return code.store(text, kind="bool").code


def emit_catch(code: Code, target: tree.Node, fallback: tree.Node, emit: Emit) -> Value:
    """Emit: the target or, when it fails, the fallback with the error's text as `this`."""
    merged = Value(code.fresh_name())
    error = code.fresh_name("e")
    with code.block("try:"):
        # What is caught is the target's own error, without the words of what it is in.
        code.scope = code.scope.derive(steps=())
        _emit_merged(code, merged.code, emit(code, target), merged)
    with code.block(f"except Exception as {error}_:"):
        code.emit(f"{error} = explain({error}_)")
        with code.override_scope(this=error, previous=code.scope.this):
            _emit_merged(code, merged.code, emit(code, fallback), merged)
    return merged
