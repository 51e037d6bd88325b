"""What a mapping may ask of all messages so that windows need not keep them, and what not."""

import pytest

from streamer.bloblang.analysis.pre_aggregation import (
    Obstacle,
    PreAggregation,
    analyze_pre_aggregation,
)

AROUND = "root = if batch_index() == 0 {\n  %s\n} else { deleted() }"


def folded(expression):
    return analyze_pre_aggregation(AROUND % expression)


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("batch_size()", ["count"]),
        ('json("p").from_all().sum()', ["sum of p"]),
        ("json().from_all().unique().length()", ["distinct"]),
        ('json("a.b").from_all().index(0)', ["first of a.b"]),
        ('json("p").from_all().index(-1)', ["last of p"]),
        ('json("p").from_all().count_by()', ["counts of p"]),
        ('json("p").from_all().top_k(3)', ["top 3 of p"]),
        ('json("p").from_all().unique().top_k(3)', ["top 3 distinct of p"]),
        ('json("p").from_all().unique().top_k(3, x -> x.length())', ["unique of p"]),
        ('json("p").from(0).uppercase()', []),
        ('json("p").from(-1).string()', ['json("p").from(-1)']),
        (
            '(json("p") * json("n")).from_all().filter(x -> x > 3).min()',
            ['(json("p") * json("n")).from_all().filter(x -> x > 3).min()'],
        ),
        (
            'json("p").from_all().any( x -> x == ")" )',
            ['json("p").from_all().any( x -> x == ")" )'],
        ),
        (
            'json("x").(y -> y.a).from_all().all(e -> e.(f -> f + e))',
            ['json("x").(y -> y.a).from_all().all(e -> e.(f -> f + e))'],
        ),
        (
            '(match json("p") { this > 5 => "a", _ => this }).from_all().count_by(this.length())',
            ['(match json("p") { this > 5 => "a", _ => this }).from_all().count_by(this.length())'],
        ),
        (
            '(json("p").catch(this)).from_all().count_by(x -> x.or("none"))',
            ['(json("p").catch(this)).from_all().count_by(x -> x.or("none"))'],
        ),
    ],
)
def test_parts_are_found_and_named(expression, parts):
    found = folded(expression)
    assert isinstance(found, PreAggregation), found
    assert [str(part) for part in found.aggregates] == parts


def test_what_is_asked_twice_is_one_part_wherever_it_stands():
    asked = '(json("p") + 1).from_all().sum()'
    found = folded(f"{asked} + {asked.replace('+ 1', '+  1')} + {asked.replace('1', '2')}")
    assert isinstance(found, PreAggregation)
    assert len(found.aggregates) == 2


THIS = "looks at `this`, the document of the first message"


@pytest.mark.parametrize(
    ("expression", "column", "reason"),
    [
        ('json("p").from_all()', 13, "here all values are kept"),
        ('json("p").from_all().sort()', 24, "sort() needs all values at once"),
        ('json("p").from_all().unique(x -> x.a)', 24, "unique() of from_all() can be aggregated"),
        ('json("p").from_all().fold(0, x -> x.tally)', 24, "fold() goes from message to message"),
        ('json("p").from_all().index(1)', 24, "index() of from_all() can be aggregated for 0"),
        ('json("p").from_all().top_k(json("n"))', 24, "top_k() of from_all() can be"),
        ('json("p").from(1)', 13, "from() can be aggregated as from(0) and from(-1)"),
        ("this.p.from_all().sum()", 3, f"the expression before from_all() {THIS}"),
        ("this.p.from(-1)", 3, f"the expression before from() {THIS}"),
        ('json("p").from_all().filter(x -> x > this.q).sum()', 40, f"argument of filter() {THIS}"),
        ('json("p").from_all().any(x -> x == this)', 38, f"the argument of any() {THIS}"),
        ('json("p").from_all().any(x -> x == json("q"))', 38, "any() looks at the function json"),
        ('json("p").or(this).from_all().sum()', 16, THIS),
        ('json("p").(y -> y + this).from_all().sum()', 23, THIS),
        ('(match { "a" => 1 }).from_all().sum()', 12, "the document of the first message"),
        ('(x -> json("p")).from_all().sum()', 4, "the document of the first message"),
        ('this.(q -> json("p").from_all().any(x -> x == q))', 49, "looks at `q`"),
        ('json(json("q")).from_all().sum()', 3, "a path that is worked out for the message"),
        ('meta("q").from_all().length()', 3, "looks at the function meta"),
        ("@q.from_all().length()", 3, "looks at metadata"),
        ("$q.from_all().length()", 3, "looks at the variable `q`"),
        ("root.q.from_all().length()", 3, "looks at `root`"),
        ("now().from_all().length()", 3, "looks at the function now"),
        ('content().string().from_all().count_by()', 3, "looks at the function content"),
        ('json("p").from(1).from_all().length()', 13, "looks at the method from"),
        ('json("p").apply("q").from_all().length()', 13, "looks at the method apply"),
    ],
)  # fmt: skip
def test_the_expression_that_stands_in_the_way_is_told(expression, column, reason):
    found = folded(expression)
    assert isinstance(found, Obstacle)
    assert found.place is not None
    assert reason in str(found)
    assert (found.place.line, found.place.column) == (2, column), found
