"""The language: literals, operators, branches, contexts, line breaks. Facts are Benthos 4.76's."""

import json

import pytest

from tests.bloblang.running import run

DOCUMENT = (
    '{"a":5,"b":"x","c":null,"d":[1,2,3],"e":{"f":1.5,"g":true},"h":false,"k":[{"v":2},{"v":1}]}'
)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("5 - -1", 6),
        ("-this.a", -5),
        ("- 5 + 3", -2),
        ("1 + 1 == 2", True),
        ("true || false && false", False),  # one level, from the left
        ("this.a + 1 | 7", 6),
        ("this.c | this.a + 1", 6),  # | binds before +
        ("this.nope | this.c | this.b", "x"),
        ("this.b.number() | 7", 7),
        ("9223372036854775807 + 1", -9223372036854775808),
        ("5000000000 * 5000000000", 6553255926290448384),
        ("-7 % 3", -1),
        ("7.9 % 4", 3),
        ("7 / 2", 3.5),
        ('"a" + this.b', "ax"),
        ('this.a == "5"', False),
        ("this.h == 0", True),  # a boolean on the left takes a number as its truth
        ("0 == this.h", False),
        ('this.e == {"g":true,"f":1.5}', True),
        ("!this.h", True),
        ('"\\u00e9\\x41\\n\\101"', "éA\nA"),
        ('"""x\n"y" \\n"""', 'x\n"y" \\n'),
        ("007", 7),
        ("this.d.0", 1),
        ("this.d.5", None),
        ('this.k."*".v', [2, 1]),
        ("this.(a + d.1)", 7),
        ("this.e.(x -> x.f)", 1.5),
        ("this.d.map_each(x -> this.a + x)", [6, 7, 8]),
        ("this.k.map_each(x -> this.d.map_each(y -> y + x.v))", [[3, 4, 5], [2, 3, 4]]),
        ("this.d.map_each(this * 2)", [2, 4, 6]),
        ("this.d.map_each(_ -> this.a)", [5, 5, 5]),
        ("if this.a > 3 { 1 } else { 2 }", 1),
        ("if this.c { 1 } else if this.a == 5 { 2 } else { 3 }", 2),
        ('match this.b { "y" => 1, "x" => 2 }', 2),
        ("match this.a { this > 7 => 1\n this > 3 => 2\n _ => 3 }", 2),
        ('match { this.h => 1, this.b == "x" => 2 }', 2),
        ("match this.nope { null => 1 }", 1),
        ("[1, deleted(), nothing(), 2]", [1, 2]),
        ('{"a": deleted(), this.b: 1}', {"x": 1}),
        ("[\n  1, # one\n  2,\n]", [1, 2]),
        ("this.\n  e.\n  f", 1.5),
        ("this.a +\n  1", 6),
        ("this.b.number().catch(err -> err.length() > 5)", True),
        ("this.c.or(this.a)", 5),
        ("range(start: 0, stop: 3)", [0, 1, 2]),
    ],
)
def test_a_query_has_benthos_value(query, value):
    assert json.loads(run(f"root.v = {query}", DOCUMENT))["v"] == value


def test_an_expression_alone_is_the_root():
    assert run("this.a + 1", DOCUMENT) == "6"


def test_a_branch_that_gives_nothing_assigns_nothing():
    assert run("root.x = 1\nroot.x = if this.h { 2 }", DOCUMENT) == '{"x":1}'


def test_carriage_returns_and_comments_separate_statements():
    assert run("# c\r\nroot.a = 1 # x\r\n\r\nroot.b = 2", "{}") == '{"a":1,"b":2}'


@pytest.mark.parametrize("arms", [3, 300])
def test_any_number_of_arms_can_follow_each_other(arms):
    cases = "".join(f"  {i} => {i * 2}\n" for i in range(arms))
    assert run(f"root = match this.a {{\n{cases}  _ => -1\n}}", f'{{"a":{arms - 1}}}') == str(
        (arms - 1) * 2
    )
    chain = " else ".join(f"if this.a == {i} {{ {i} }}" for i in range(arms))
    assert run(f"root = {chain}", f'{{"a":{arms - 1}}}') == str(arms - 1)


def test_long_chains_are_no_nesting():
    assert run("root = this.a" + " + 1" * 2000, '{"a":1}') == "2001"
    assert run("root = this.a" + ".string()" * 1000, '{"a":1}') == "1"
    assert run("root = this.b" + " | this.c" * 200 + " | 5", "{}") == "5"


def test_a_named_map_has_its_own_variables_and_root():
    mapping = """map f {
  let x = 1
  root.a = $x
  root.b = root.a
}
let x = 2
root.m = this.apply("f")
root.x = $x"""
    assert run(mapping, "{}") == '{"m":{"a":1,"b":1},"x":2}'


def test_a_named_map_may_call_itself():
    mapping = """map last {
  root = if this.length() > 1 { this.slice(1).apply("last") } else { this.index(0) }
}
root = this.apply("last")"""
    assert run(mapping, "[1,2,3]") == "3"
