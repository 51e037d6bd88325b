"""Errors in Benthos's words, at run time and when a mapping is read."""
# ruff: noqa: E501 - tables of whole error texts

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from streamer.bloblang.carets import format_caret
from tests.bloblang.running import run

DOCUMENT = '{"a":5,"b":"x","c":null,"d":[1,2,3],"e":{"f":1.5}}'


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ("root.x = this.b.uppercase().length() + this.c", "1): cannot add types number (from method length) and null (from field `this.c`)"),
        ("root.x = this.a.uppercase()", "1): expected string value, got number from field `this.a` (5)"),
        ("\n\nroot.x = this.a.uppercase()", "3): expected string value, got number from field `this.a` (5)"),
        ("root.x = this.b.number()", '1): field `this.b`: strconv.ParseFloat: parsing "x": invalid syntax'),
        ("root.x = this.c.not_null()", "1): field `this.c`: value is null"),
        ("root.x = this.b > 5", "1): cannot compare types string (from field `this.b`) and number (from number literal)"),
        ("root.x = this.a / 0", "1): number literal: attempted to divide by zero"),
        ("root.x = if this.b { 1 }", "1): field `this.b` resolved to a non-boolean value x (string)"),
        ("root.x = if this.b.number() > 1 { 1 }", '1): failed to check if condition: field `this.b`: strconv.ParseFloat: parsing "x": invalid syntax'),
        ("if this.c { root = 1 }", "1): field `this.c` resolved to a non-boolean value <nil> (<nil>)"),
        ("root.x = match this.a { this.x > 1 => 1 }", "1): failed to check match case 0: cannot compare types null (from field `this.x`) and number (from number literal)"),
        ("root.x = this.b && true", '1): expected bool value, got string ("x")'),
        ("root.x = !this.a", "1): expected bool value, got number from field `this.a` (5)"),
        ('root.x = {"k": this.a.uppercase()}', "1): failed to resolve 'k' value: expected string value, got number from field `this.a` (5)"),
        ("root.x = {this.a: 1}", "1): mapping returned invalid key type: json.Number"),
        ("root.x = this.d.map_each(v -> v.uppercase())", "1): field `this.d`: failed to process element 0: expected string value, got number from field `v` (1)"),
        ('root.x = this.d.map_each(v -> if v > 2 { throw("no") } else { v })', "1): failed to process element 2: if expression: no"),
        ("root.x = this.d.filter(v -> v.uppercase() == 1)", "1): expected string value, got number from field `v` (1)"),
        ("root.x = this.d.all(v -> v)", "1): field `this.d`: element 0: expected bool value, got number (1)"),
        ("root.x = this.b.has_prefix(this.c)", "1): method 'has_prefix': failed to extract input arg 'value': wrong argument type, expected string, got null"),
        ("root.x = this.a.int8() + 200.int8()", "1): value is too large to be cast as an 8-bit signed integer"),
        ('root.x = this.apply("nope")', "1): map nope was not found"),
        ('root.x = throw("oh")', "1): oh"),
        ('map f {\n\n  root.q = this.c.not_null()\n}\nroot.a = 1\nroot.z = this.apply("f")', "6): failed assignment (line 3): field `this.c`: value is null"),
        ('map f {\n  root = this.apply("f")\n}\nroot = this.apply("f")', "4): failed assignment (line 2): entering map f exceeded maximum allowed stacks of 5000, this could be due to unbounded recursion"),
    ],
)  # fmt: skip
def test_a_failure_names_line_origin_and_types(mapping, error):
    assert run(mapping, DOCUMENT) == f'Error("failed assignment (line {error}")'


def test_a_message_that_is_no_document_is_told_with_the_path_that_was_wanted():
    found = run("root.a = this.b.c", "no")
    assert found.startswith(
        'Error("failed assignment (line 1): unable to reference message as structured '
        "(with 'this.b.c'): parse as json: "
    )
    assert "message is empty" in run("root = this", "")
    assert run("root = this.catch(deleted())", "no") == "<deleted>"
    assert run("root.e = this.a.catch(e -> e)", "no") == (
        '{"e":"context was undefined, unable to reference `a`"}'
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected import, map, or assignment"),
        ("root =1", 1, 7, "expected whitespace"),
        ("root = ", 1, 8, "expected query"),
        ("root.a = 1\nroot.b = \nroot.c = 1", 2, 10, "expected query"),
        ("root = this.foo bar", 1, 17, "expected line break"),
        ("root.a = this.b.", 1, 17, "required: expected method or field path"),
        ("root = (1", 1, 10, "required: expected closing bracket"),
        ("root = now(1", 1, 13, "required: expected comma or closing bracket"),
        ("root = if this.a", 1, 17, "required: expected {"),
        ("root = if this.a { 5", 1, 21, "required: expected }"),
        ("root = match this { 1 => 2 3", 1, 28, "required: expected ,, line break, or }"),
        ('root = "abc', 1, 12, "required: expected end quote"),
        ('root = "a\\q"', 1, 8, "failed to unescape quoted string contents: invalid syntax"),
        ("root = 1 / 0", 1, 8, "number literal: attempted to divide by zero"),
        ("let = 5", 1, 5, "required: expected variable name"),
        ("map f {\n  meta a = 1\n}\nroot = 1", 2, 3, "setting meta fields is not allowed within this block"),
        ("map f {\n root = 1\n}\nmap f {\n root = 1\n}", 4, 1, "map name collision: f"),
        ("root = this.a.split()", 1, 22, "missing parameter: delimiter"),
        ("root = this.a.split(1)", 1, 23, "field delimiter: wrong argument type, expected string, got number"),
        ('root = this.a.split(nope: ",")', 1, 31, "unknown parameter nope, did you mean delimiter?"),
        ('root = this.a.split(",", true, 1)', 1, 34, "wrong number of arguments, expected 2, got 3"),
        ('root = this.a.split(",", empty_as_null: true)', 1, 46, "cannot mix named and nameless arguments"),
        ("root = this.a.slice(5, 2)", 1, 26, "lower slice bound 5 must be lower than upper (2)"),
        ('root = this.a.hash("nope")', 1, 27, "unrecognized hash type: nope"),
        ("root = 9223372036854775808", 1, 8, "failed to parse '9223372036854775808' as integer: strconv.ParseInt: parsing \"9223372036854775808\": value out of range"),
        ("root = this.a(x -> 1)", 1, 22, "unrecognised method 'a'"),
        ("root = a -> b -> c", 1, 8, "it would be in poor taste to capture the same context under both 'a' and 'b'"),
        ("root = this.map_each(this -> 1)", 1, 22, "context label `this` is not allowed"),
    ],
)  # fmt: skip
def test_a_mapping_that_cannot_be_read_says_where_and_what_was_expected(
    text, line, column, message
):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(text)
    error = caught.value
    assert (error.line, error.column, error.message) == (line, column, message)


def test_a_misspelt_name_comes_with_a_suggestion():
    with pytest.raises(BloblangError) as caught:
        compile_mapping("root.a = this.b.upercase()")
    assert caught.value.message == "unrecognised method 'upercase'"
    assert caught.value.suggestion == "did you mean 'uppercase'?"
    with pytest.raises(BloblangError, match="did you mean 'batch_index'"):
        compile_interpolation("${! batch_indx() }")


def test_a_caret_marks_the_place():
    text = "root.a = 1\nroot.b = this.nope()"
    with pytest.raises(BloblangError) as caught:
        compile_mapping(text)
    assert format_caret(caught.value, text).splitlines()[1:] == [
        "  |",
        "2 | root.b = this.nope()",
        "  |               ^^^^",
    ]


@pytest.mark.parametrize("opening", ["(", "[", "!(", "if true { ", "this.map_each(x -> "])
def test_nesting_without_end_is_an_error(opening):
    with pytest.raises(BloblangError):
        compile_mapping("root = " + opening * 10_000)
    closing = {"(": ")", "[": "]", "!(": ")", "if true { ": " }"}.get(opening, ")")
    try:
        compile_mapping("root = " + opening * 10_000 + "true" + closing * 10_000)
    except BloblangError as e:
        assert "nested" in e.message or "context label" in e.message


@pytest.mark.parametrize(
    "mapping",
    [
        "root = this.__class__.__mro__",
        'root = this."__class__\']+(1)"',
        'root."\'];import os" = 1',
        'meta "x\'" = 1\nroot = @"x\'"',
    ],
)
def test_names_cannot_reach_into_python(mapping):
    assert "Error" not in run(mapping, "{}")


LET = "a let stands at the top of the mapping, before what reads it, or in an if statement"
ASSIGNMENT = "an if expression gives a value; an if statement, with nothing before the if, can "


@pytest.mark.parametrize(
    ("mapping", "message", "suggestion"),
    [
        ("root = if this.a { let b = 1\n$b }", "required: expected }", LET),
        ("root = if this.a {\n  let b = 1\n  $b }", "required: expected }", LET),
        ("root = this.a.map_each(i -> { let b = i })", "required: expected query", LET),
        ("root = if this.a { root.b = 1 }", "required: expected }", ASSIGNMENT),
        ("root = if this.a {\n  root.b.c = 1\n}", "required: expected }", ASSIGNMENT),
        ("root = if this.a { b == 1 2 }", "required: expected }", ""),
        ("root = 1\nlet = 2", "", ""),
        ("if this.a {\n  let = 2\n}", "", ""),
        ("root.a =", "", ""),
    ],
)
def test_a_statement_inside_of_an_expression_is_told_where_it_stands(mapping, message, suggestion):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(mapping)
    assert message in caught.value.message
    assert caught.value.suggestion.startswith(suggestion)
    assert bool(caught.value.suggestion) is bool(suggestion)
