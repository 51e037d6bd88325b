"""Nesting without end is an error at a place; what people write is far from the limit."""

import subprocess
import sys
import threading

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from streamer.bloblang.compiler.batch_methods import METHODS
from streamer.bloblang.resolver import NESTING_METHODS
from tests.bloblang.running import run
from tests.bloblang.test_growth import SHAPES, around

NESTED = {
    "arrays": around("[", "this", "]"),
    "objects": around('{"a":', "this", "}"),
    "computed keys": around("{this.a:", "1", "}"),
    "maps into brackets": around("this.(", "this", ")"),
    "catch": around("this.catch(", "1", ")"),
    "a chain of catch": around(".catch(1)", before="root = this"),
    "a chain of or": around(".or(1)", before="root = this"),
    "a chain of not": around(".not()", before="root = this"),
    "a chain of from": around(".from(0)", before="root = this"),
    "a chain of from_all": around(".from_all()", before="root = this"),
    "queries": around("this.map_each(", "this", ")"),
    "lambdas": lambda n: (
        "root = " + "".join(f"this.map_each(x{i} -> " for i in range(n)) + "1" + ")" * n
    ),
    "calls": around("[].append(", "1", ")"),
    "folds": around("this.fold(0, ", "this", ")"),
    "if expressions": around("if this.a { ", "1", " }"),
    "else": around("if this.a { 1 } else { ", "2", " }"),
    "conditions": around("if ", "true", " { true }"),
    "if statements": around("if this.a { ", "root = 1", " }", before=""),
    "else statements": around(
        "if this.a { root = 1 } else { ", "root = 2", " }", before="", after=""
    ),
    "match": around("match this { _ => ", "1", " }"),
    "match without subject": around("match { this.a => ", "1", " }"),
    "match of five cases": around("match this { 1=>1, 2=>2, 3=>3, 4=>4, 5=>5, _ => ", "1", " }"),
    "five operands of |": around("(this.a | this.b | this.c | this.d | this.e | ", "1", ")"),
    "logic": around("(this.a && ", "true", ")"),
}


def error_of(text):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(text)
    return caught.value


@pytest.mark.parametrize(
    ("shape", "depth"),
    [
        *((shape, 100) for shape in NESTED),
        *((shape, 10_000) for shape in ("arrays", "catch", "a chain of or", "if statements")),
    ],
)
def test_too_deep_is_refused_where_it_is(shape, depth):
    text = NESTED[shape](depth)
    error = error_of(text)
    assert "nested more than" in error.message
    assert error.line == 1 and 1 <= error.column <= len(text)


@pytest.mark.parametrize("shape", NESTED)
def test_twenty_levels_are_taken(shape):
    compile_mapping(NESTED[shape](20))


def test_brackets_alone_are_no_nesting():
    assert run(around("(", "1", ")")(1_000)) == "1"
    assert "nested more than" in error_of(around("(", "1", ")")(1_001)).message


def test_brackets_in_texts_and_comments_are_no_nesting():
    quoted = '"' + "(" * 2_000 + '"'
    assert run(f"root = {quoted}.length() # " + "[" * 2_000) == "2000"
    raw = '"""' + '("{' * 2_000 + '"""'
    assert run(f"root = {raw}.length()") == "6000"
    assert run("root = [" + "(1), " * 2_000 + "1].length()") == "2001"


def test_a_long_path_is_no_nesting():
    assert run("root = this" + ".a" * 10_000) == "null"


def test_the_error_of_a_target_caught_twenty_times_over_says_its_words_once():
    text = 'root = throw("no")' + ".catch(throw(this))" * 20 + ".catch(this)"
    assert run(text) == "no"


def test_names_of_methods_that_are_built_around_their_target_are_known():
    assert set(METHODS) | {"not"} == NESTING_METHODS


def test_a_nested_interpolation_is_refused_where_it_is():
    with pytest.raises(BloblangError, match="nested more than"):
        compile_interpolation("${! " + "[" * 10_000 + "1" + "]" * 10_000 + " }")


def test_an_ordinary_mapping_is_read_when_little_of_the_stack_is_left():
    found = []

    def deeper(levels):
        if levels:
            deeper(levels - 1)
        else:
            found.append(error_of("root = this.foo(").column)

    thread = threading.Thread(target=deeper, args=(sys.getrecursionlimit() - 300,))
    thread.start()
    thread.join()
    assert found


PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.{module} import {table}
for shape in sys.stdin.read().split("\\n"):
    text = {table}[shape](1_000_000)
    try:
        compile_mapping(text)
    except BloblangError as e:
        lines = text.split("\\n")
        assert 1 <= e.line <= len(lines) and 1 <= e.column <= len(lines[e.line - 1]) + 1, shape
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "table", "shapes"),
    [
        ("test_deep_nesting", "NESTED", ["arrays", "calls", "if statements", "logic"]),
        ("test_growth", "SHAPES", [shape for shape in SHAPES if "open" in shape]),
    ],
)
def test_a_million_levels_end_no_process(module, table, shapes):
    program = PROGRAM.format(module=module, table=table)
    done = subprocess.run(
        [sys.executable, "-c", program], input="\n".join(shapes), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
