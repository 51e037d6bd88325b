"""What can never work in a mapping that can be read: it is told, and it never does work."""

from __future__ import annotations

import pytest

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.bloblang.analysis.static_warnings import find_static_warnings
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message


def told(text: str) -> list[str]:
    found = find_static_warnings(compile_mapping(text))
    return [f"{one.line},{one.column} {one.message}; {one.suggestion}" for one in found]


def fails(text: str) -> bool:
    try:
        compile_mapping(text).apply([Message(b'{"a":[1]}')], 0, Execution(lambda: 0))
    except MessageError:
        return True
    return False


NEVER = "is never set before this"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("root = $x", f"1,8 the variable 'x' {NEVER}; "),
        ("root = $x\nlet x = 1", f"1,8 the variable 'x' {NEVER}; "),
        ("let x = $x", f"1,9 the variable 'x' {NEVER}; "),
        (
            "let total = 1\nroot.a = $totl",
            f"2,10 the variable 'totl' {NEVER}; did you mean 'total'?",
        ),
        ("root = this.a.map_each(i -> i + $x)", f"1,33 the variable 'x' {NEVER}; "),
        ("root = if $x == 1 { 2 }", f"1,11 the variable 'x' {NEVER}; "),
        ('root = {"k": [$x]}', f"1,15 the variable 'x' {NEVER}; "),
        ("if $x == 1 { root = 2 }", f"1,4 the variable 'x' {NEVER}; "),
        ('meta a = var("x")', f"1,10 the variable 'x' {NEVER}; "),
        (
            'let x = 1\nmap m { root = $x }\nroot = this.apply("m")',
            f"2,16 the variable 'x' {NEVER}; "
            "a named map has no variables of the mapping that applies it",
        ),
        ('root = this.apply("m")', "1,19 there is no map 'm' to apply; "),
        (
            'map loud { root = 1 }\nroot = this.apply("lout")',
            "2,19 there is no map 'lout' to apply; did you mean 'loud'?",
        ),
        ("root = counter(min: -1)", "1,8 counter: min argument must be >0, got -1; "),
        (
            'root = counter(max: "many")',
            "1,8 counter: failed to resolve max argument: strconv.ParseInt: "
            'parsing "many": invalid syntax; ',
        ),
        (
            "root = counter(min: 5, max: 5)",
            "1,8 counter: max argument must be >0 and >min, got 5; ",
        ),
    ],
)
def test_what_never_works_is_told_at_its_place(mapping: str, said: str) -> None:
    assert told(mapping) == [said]
    assert fails(mapping)


@pytest.mark.parametrize(
    "mapping",
    [
        "let x = 1\nroot = $x",
        "if this.a.length() == 1 { let x = 1 }\nroot = $x",
        'map m { let x = 1\nroot = $x }\nroot = this.apply("m")',
        'map m { root = 1 }\nroot = this.apply("m")',
        'let n = "m"\nmap m { root = 1 }\nroot = this.apply($n)',
        "root = counter()",
        "root = counter(min: 3, max: this.a.0 + 7)",
        'root = counter(min: "1", max: "5")',
        "root = counter(min: this.a.0, max: 2)",
        "root = counter(set: nothing())",
        "let x = 1\nroot = this.a.map_each(i -> $x).map_each(i -> match { $x == 1 => 2, _ => 3 })",
    ],
)
def test_what_may_work_is_not(mapping: str) -> None:
    assert told(mapping) == []
    assert not fails(mapping)


def test_an_interpolation_has_no_variables() -> None:
    (one,) = find_static_warnings(compile_interpolation('a ${! json("a") } ${! $x }'))
    assert (one.line, one.column) == (1, 23)
    assert one.suggestion == "an interpolation has no variables; metadata goes with a message"


def test_long_chains_and_long_mappings_are_looked_at_in_time() -> None:
    chain = "root = this.a" + ".append(1)" * 3_000
    assert told(chain) == []
    assert len(told("\n".join(f"root.f{i} = $x" for i in range(500)))) == 500
