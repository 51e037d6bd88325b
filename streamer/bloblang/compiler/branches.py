"""Expressions that evaluate only what they need: `if`, `match`, `|`, `&&`, `||`, catch and or."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.compiler.code import Code, Value
from streamer.bloblang.compiler.sites import Condition, Prefix
from streamer.bloblang.runtime import document, objects, operations
from streamer.value import DELETED, NOTHING

Emit = Callable[[Code, tree.Node], Value]
# Up to so many arms are nested in each other; more become a loop that is left.
_NESTED = 4


def _into(code: Code, name: str, value: Value, merged: Value) -> None:
    code.emit(f"{name} = {value.code}")
    merged.special = merged.special or value.special


def condition(
    code: Code, node: tree.Node, check: Callable[..., bool], prefix: str, emit: Emit
) -> str:
    """Emit a condition and return Python that is true when it holds.

    An error inside the condition gets the prefix; a value that is no boolean does not.
    """
    with code.steps(Prefix(prefix)):
        value = emit(code, node)
        if value.kind != "bool":
            value = code.settle(value)
    if value.kind == "bool":
        return value.code
    test = code.constant(check, check.__name__)
    site = Condition(annotation(node), isinstance(node, tree.Path | tree.Get))
    text = f"{value.code} if type({value.code}) is bool else {test}({value.code})"
    return code.store(text, site, kind="bool").code


def cascade(
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
    if count <= _NESTED:
        _nested(code, 0, count, test, body, last)
        return
    # Python's own compiler gives up on a hundred levels of indentation.
    with code.block("while True:"):
        for at in range(count):
            with code.block(f"if {test(at)}:"):
                body(at)
                code.emit("break")
        last()
        code.emit("break")


def _nested(
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
        _nested(code, at + 1, count, test, body, last)


def if_expression(code: Code, node: tree.If, emit: Emit) -> Value:
    """Emit an `if` expression."""
    merged = Value(code.name())

    def test(at: int) -> str:
        prefix = f"failed to check if condition {at}: " if at else "failed to check if condition: "
        return condition(code, node.branches[at][0], objects.condition, prefix, emit)

    def last() -> None:
        none = Value("NOTHING", special=True)
        value = emit(code, node.otherwise) if node.otherwise is not None else none
        _into(code, merged.code, value, merged)

    def body(at: int) -> None:
        _into(code, merged.code, emit(code, node.branches[at][1]), merged)

    cascade(code, len(node.branches), test, body, last)
    return merged


def match(code: Code, node: tree.Match, emit: Emit) -> Value:
    """Emit a `match` expression."""
    if node.subject is not None:
        subject = emit(code, node.subject)
        # A literal gets a variable as well: what is written out looks at its type.
        subject = code.store(subject.code, special=subject.special, kind=subject.kind)
    else:
        subject = Value(code.scope.this or _document_or_null(code))
    merged = Value(code.name())
    # What stands behind `_` is never reached.
    arms = list(itertools.takewhile(lambda case: case[0] is not None, node.cases))

    def test(at: int) -> str:
        with code.steps(Prefix(f"failed to check match case {at}: ")):
            wanted = arms[at][0]
            assert wanted is not None
            return _matches(code, wanted, subject, emit)

    def body(at: int) -> None:
        _into(code, merged.code, emit(code, arms[at][1]), merged)

    def last() -> None:
        none = Value("NOTHING", special=True)
        rest = node.cases[len(arms) :]
        _into(code, merged.code, emit(code, rest[0][1]) if rest else none, merged)

    with code.multiplied(), code.within(this=subject.code, previous=code.scope.this):
        cascade(code, len(arms), test, body, last)
    return merged


def _document_or_null(code: Code) -> str:
    if code.linked:
        code.owned, code.copied = set(), False
        return code.store("None if D is NOTHING else D").code
    if code.scope.document is not None:
        return code.scope.document
    return code.store(f"{code.constant(document.or_null, 'or_null')}(M)").code


def _matches(code: Code, test: tree.Node, subject: Value, emit: Emit) -> str:
    """Return Python for whether a case fits: a literal is compared, a query must give true."""
    if not isinstance(test, tree.Literal):
        value = emit(code, test)
        return value.is_true()
    if test.value is DELETED or test.value is NOTHING:
        return "False"
    same = code.constant(operations.same, "same")
    wanted = emit(code, test)
    if wanted.kind in ("str", "int"):
        return (
            f"({subject.code} == {wanted.code} if type({subject.code}) is {wanted.kind} "
            f"else {same}({subject.code}, {wanted.code}))"
        )
    return f"{same}({subject.code}, {wanted.code})"


def chain(code: Code, node: tree.Chain, emit: Emit) -> Value:
    """Emit operands joined by `|`, or by `&&` and `||`."""
    if node.operators[0] == "|":
        *tried, last = node.operands
        return coalesce(code, tried, last, emit)
    return _logic(code, node, emit)


def coalesce(code: Code, tried: list[tree.Node], last: tree.Node, emit: Emit) -> Value:
    """Emit: the first operand that neither fails nor is null, else the last one."""
    merged = Value(code.name())
    if len(tried) <= _NESTED:
        _first(code, tried, last, merged, emit)
        return merged

    def test(at: int) -> str:
        return f"not ({_try(code, tried[at], merged.code, emit)})"

    def rest() -> None:
        _into(code, merged.code, emit(code, last), merged)

    cascade(code, len(tried), test, lambda at: None, rest)
    return merged


def _first(code: Code, tried: list[tree.Node], last: tree.Node, merged: Value, emit: Emit) -> None:
    if not tried:
        _into(code, merged.code, emit(code, last), merged)
        return
    with code.block(f"if {_try(code, tried[0], merged.code, emit)}:"):
        _first(code, tried[1:], last, merged, emit)


def _try(code: Code, node: tree.Node, name: str, emit: Emit) -> str:
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


def _logic(code: Code, node: tree.Chain, emit: Emit) -> Value:
    """Emit `&&` and `||`, which bind alike and are decided from the left."""
    name = code.name()
    code.emit(f"{name} = {_boolean(code, node.operands[0], emit)}")
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        with code.block(f"if {name}:" if operator == "&&" else f"if not {name}:"):
            code.emit(f"{name} = {_boolean(code, operand, emit)}")
    return Value(name, kind="bool")


def _boolean(code: Code, node: tree.Node, emit: Emit) -> str:
    value = emit(code, node)
    if value.kind == "bool":
        return value.code
    value = code.settle(value)
    check = code.constant(objects.boolean, "boolean")
    text = f"{value.code} if type({value.code}) is bool else {check}({value.code})"
    return code.store(text, kind="bool").code


def catch(code: Code, target: tree.Node, fallback: tree.Node, emit: Emit) -> Value:
    """Emit: the target or, when it fails, the fallback with the error's text as `this`."""
    merged = Value(code.name())
    error = code.name("e")
    with code.block("try:"):
        # What is caught is the target's own error, without the words of what it is in.
        code.scope = code.scope.inside(steps=())
        _into(code, merged.code, emit(code, target), merged)
    with code.block(f"except Exception as {error}_:"):
        code.emit(f"{error} = explain({error}_)")
        with code.within(this=error, previous=code.scope.this):
            _into(code, merged.code, emit(code, fallback), merged)
    return merged
