"""Functions in Python as mappings see them: parameters, values, errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from streamer.bloblang import compile_mapping
from streamer.bloblang.errors import BloblangError
from streamer.bloblang.extension import Extension
from streamer.bloblang.python_functions import (
    FunctionError,
    bloblang_function,
    bloblang_method,
    declare_python,
    read_marks,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message

EX = Execution(lambda: 0)


def extend(*functions: Callable[..., Any]) -> Extension:
    declared: dict[str, dict[str, Any]] = {"function": {}, "method": {}}
    for function in functions:
        for mark in read_marks(function):
            declared[mark.kind][mark.name] = declare_python(mark, function, repr)
    names = "-".join(str(id(function)) for function in functions)
    return Extension(declared["function"], declared["method"], names)


def run(mapping: str, raw: bytes, *functions: Callable[..., Any]) -> Any:
    compiled = compile_mapping(mapping, extension=extend(*functions))
    return compiled.query([Message(raw)], 0, EX)


@bloblang_function()
def add_vat(net: float, rate: float = 0.5) -> float:
    """Return a price with its tax."""
    if net < 0:
        raise ValueError("a negative price")
    return net * (1 + rate)


@bloblang_method()
def shout(text: str, marks: int = 1) -> str:
    return text.upper() + "!" * marks


def test_arguments_are_given_by_place_and_by_name() -> None:
    assert run("root = add_vat(this.n)", b'{"n":2}', add_vat) == 3
    assert run("root = add_vat(rate: 0, net: this.n)", b'{"n":2}', add_vat) == 2
    assert run("root = this.t.shout(2)", b'{"t":"a"}', shout) == "A!!"
    assert run("root = this.t.shout().length()", b'{"t":"a"}', shout) == 2


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ("root = add_vat()", "missing parameter: net"),
        ("root = add_vat(1, 2, 3)", "wrong number of arguments, expected 2, got 3"),
        ('root = add_vat("x")', "field net: expected number value, got string"),
        ("root = add_vat(net: 1, nope: 2)", "unknown parameter nope"),
        ("root = add_va(1)", "unrecognised function 'add_va'; did you mean 'add_vat'?"),
        ("root = this.a.shuot()", "unrecognised method 'shuot'; did you mean 'shout'?"),
        ("root = this.a.shout(true)", "field marks: expected number value, got bool"),
    ],
)
def test_a_wrong_call_is_an_error_at_its_place(mapping: str, text: str) -> None:
    with pytest.raises(BloblangError) as raised:
        compile_mapping(f"root.a = 1\n{mapping}", extension=extend(add_vat, shout))
    assert text in str(raised.value)
    assert raised.value.line == 2 and raised.value.column > 7


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("add_vat(-1)", "function 'add_vat': ValueError('a negative price')"),
        ("this.n.shout()", "expected string value, got number from field `this.n` (1)"),
        ("this.n.add_vat()", "unrecognised method"),
    ],
)
def test_errors_can_be_caught(expression: str, text: str) -> None:
    mapping = f"root = {expression}"
    if "unrecognised" in text:
        with pytest.raises(BloblangError, match=text):
            run(mapping, b'{"n":1}', add_vat, shout)
        return
    with pytest.raises(MessageError) as raised:
        run(mapping, b'{"n":1}', add_vat, shout)
    assert text in str(raised.value)
    assert run(f'root = {expression}.catch("caught")', b'{"n":1}', add_vat, shout) == "caught"


def test_a_message_stays_as_it_is_whatever_a_function_does_with_it() -> None:
    @bloblang_method()
    def spoil(value: dict) -> dict:  # type: ignore[type-arg]
        value["list"].append(2)
        value["new"] = True
        return value

    made = run("root.new = this.spoil()\nroot.old = this", b'{"list":[1]}', spoil)
    assert made == {"new": {"list": [1, 2], "new": True}, "old": {"list": [1]}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ((1, {"a"}), [1, ["a"]]),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (float("nan"), None),
        (None, None),
        (b"\xff", b"\xff"),
    ],
)
def test_results_become_values(result: Any, expected: Any) -> None:
    @bloblang_function()
    def give() -> Any:
        return result

    assert run("root = give()", b"{}", give) == expected


def test_a_result_without_a_form_is_an_error_of_the_message() -> None:
    @bloblang_function()
    def give() -> Any:
        return object()

    @bloblang_function()
    def leave() -> Any:
        raise SystemExit(1)

    with pytest.raises(MessageError, match="function 'give': the result is of the type object"):
        run("root = give()", b"{}", give)
    assert run('root = leave().catch("stays")', b"{}", leave) == "stays"


def test_times_and_variadic_arguments() -> None:
    @bloblang_function()
    def year(at: datetime) -> int:
        return at.year

    @bloblang_function("sum_up")
    def add(*numbers: float) -> float:
        return sum(numbers)

    assert run('root = year("2026-11-27T10:00:00Z")', b"{}", year) == 2026
    assert run("root = sum_up(1, this.n, 3)", b'{"n":2}', add) == 6


def test_only_functions_that_always_give_the_same_run_on_the_document_alone() -> None:
    @bloblang_function(deterministic=False)
    def roll() -> int:
        return 4

    def compile_with(mapping: str) -> Any:
        return compile_mapping(mapping, extension=extend(add_vat, roll))

    assert compile_with("root = add_vat(this.n)").doc_fn({"n": 2}) == 3
    assert compile_with("root = roll()").doc_fn is None
    assert compile_with("root = roll()").uses.random


@pytest.mark.parametrize(
    "code",
    [
        "async def f(x): return x",
        "def f(x): yield x",
        "def f(*, x): return x",
        "def f(**x): return x",
        "def f(x=object()): return x",
    ],
)
def test_a_function_that_mappings_cannot_call_is_refused(code: str) -> None:
    names: dict[str, Any] = {}
    exec(code, names)
    [mark] = read_marks(bloblang_function()(names["f"]))
    with pytest.raises(FunctionError):
        declare_python(mark, names["f"], repr)


def test_a_name_must_be_one_of_mappings_and_a_method_needs_a_target() -> None:
    def f() -> int:
        return 1

    for mark in read_marks(bloblang_function("Nope")(bloblang_method()(f))):
        with pytest.raises(FunctionError, match="no name in mappings|no parameter for its target"):
            declare_python(mark, f, repr)


def test_a_mapping_that_a_message_brings_calls_no_python() -> None:
    text = b'{"m":"root = add_vat(1)"}'
    with pytest.raises(MessageError, match="unrecognised function 'add_vat'"):
        run('root = "".bloblang(this.m)', text, add_vat)
