"""Hints for whoever writes a mapping as another language would have it."""

from __future__ import annotations

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from streamer.bloblang.analysis.static_warnings import find_static_warnings

QUOTES = "text stands in double quotes"
LAMBDA = "a lambda is written x -> x + 1"
COMMENT = "a comment begins with #"
HABITS = {
    "root.a = 'abc'": QUOTES,
    "root.a = `abc`": QUOTES,
    "root.a = this.a ? 1 : 2": "write if this.a { 1 } else { 2 }",
    'root.a = this.a > 1 ? "x" : this.b': 'write if this.a > 1 { "x" } else { this.b }',
    "root.a = this.b.map_each(x -> x.c != 2 ? 1 : x.d)": "write if x.c != 2 { 1 } else { x.d }",
    "root.a = this.a > 1 ? this.b ? 1 : 2 : 3": "a conditional is written if this.a { 1 } else {",
    "if this.a == 1 then root.b = 2": "branches stand in braces",
    'root.a = this.a == "x" and this.b': "and is written &&",
    "root.a = this.a or this.b": "or is written ||",
    "root.a = not this.a": "not is written !",
    'root.a = this.a === "x"': "equality is written ==",
    'root.a = this.a !== "x"': "inequality is written !=",
    "root.a = this.a <> 1": "inequality is written !=",
    "root.a = this.a is null": "write == null",
    'root.a = this.a in ["x"]': "write .contains(…) behind the list",
    'root.a = this.a ?? "x"': "stands behind |",
    "root.a = this?.a": "a field that is missing gives null",
    'root.a = this["a"]': 'a field stands behind a dot: this.a, or this."a b"',
    "root.a = this.a[0]": "an element is a method: .index(0)",
    "root.a = this.a;": "a statement ends with its line",
    "root.a = this.b++": "there is no ++",
    "root.a += 1": "write root.a = this.a + 1",
    "root.a := 1": "an assignment is written =",
    "root.a = this.a // b": COMMENT,
    "// comment": COMMENT,
    "var x = 1": "a variable is set by let",
    "return this": "root = …",
    "for x in this.a { }": "a loop is a method",
    "root = this.a.map_each(x => x)": LAMBDA,
    "root = this.a.map_each(lambda x: x)": LAMBDA,
    'root.a = "a" . "b"': "texts are joined by +",
    'root.a = {"a" = 1}': "in an object a value follows a colon",
    "root.a = ${! this.a }": "a mapping takes the query itself",
    "if this.a { root.b = 1 } elif this.c { root.b = 2 }": "write else if",
    'root.a = if this.a == "}" { 1': "the { at line 1 char 27 is not closed",
    "root.a = 1\nroot.b = [1, 2": "the [ at line 2 char 10 is not closed",
    'root.a = "abc': "the text that begins at line 1 char 10 is not closed",
    "root = uuid()": "did you mean 'uuid_v4'?",
    "root = coalesce(this.a, 1)": "write this.a | this.b",
    "root.a = len(this.a)": "length is a method: write .length() behind the value",
    "root.a = uppercase(this.a)": "uppercase is a method: write .uppercase() behind the value",
    "root.a = this.a.toUpperCase()": "did you mean 'uppercase'?",
    "root.a = this.a.startswith(1)": "did you mean 'has_prefix'?",
}


@pytest.mark.parametrize(("text", "hint"), HABITS.items(), ids=HABITS)
def test_a_habit_of_another_language_gets_a_hint(text: str, hint: str) -> None:
    with pytest.raises(BloblangError) as caught:
        compile_mapping(text)
    assert hint in caught.value.suggestion
    # The message itself is Benthos's.
    assert hint not in caught.value.message


@pytest.mark.parametrize("text", ["root.a = ", "root.a = 1 2", "root.a = this.a.)", "root = @@"])
def test_where_nothing_is_known_nothing_is_said(text: str) -> None:
    with pytest.raises(BloblangError) as caught:
        compile_mapping(text)
    assert caught.value.suggestion == ""


@pytest.mark.parametrize("after", ["root.b = =", "root.b = 'x'", "root.b = {"])
def test_the_nearest_name_is_said_whatever_follows(after: str) -> None:
    with pytest.raises(BloblangError) as caught:
        compile_mapping(f"root.a = this.b.uppercas()\n{after}")
    assert caught.value.message == "unrecognised method 'uppercas'"
    assert caught.value.suggestion == "did you mean 'uppercase'?"


def test_constants_of_other_languages_are_doubtful() -> None:
    code = compile_mapping("root.a = None\nroot.b = this.None\nroot.c = [true, True]")
    found = {(one.line, one.column, one.suggestion) for one in find_static_warnings(code)}
    assert found == {
        (1, 10, "write null, or this.None for the field"),
        (3, 17, "write true, or this.True for the field"),
    }


def test_a_conditional_in_a_field_is_written_without_what_is_around_it() -> None:
    with pytest.raises(BloblangError, match=r"write if this\.a == 1 { \"x\" } else { 2 }$"):
        compile_interpolation('v=${! this.a == 1 ? "x" : 2 } and on')
