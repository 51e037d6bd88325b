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
        ('json("p").from_all().avg()', ["avg of p"]),
        ('json("p").from_all().filter(x -> x > 3).stddev_samp()',
         ['json("p").from_all().filter(x -> x > 3).stddev_samp()']),
        ('[json("p").from_all().median(), json("p").from_all().percentile(this.share)]',
         ["values of p"]),
        ('[json("p").from_all().percentile_approx(0.5), json("p").from_all().avg()]',
         ["histogram of p", "avg of p"]),
        ('json("a").uppercase().from_all().percentile_disc(0.1)',
         ['values of json("a").uppercase().from_all()']),
        ('json("p").from_all().approx_count_distinct()', ["approximate distinct of p"]),
        ('json().from_all().min_by(e -> e.at).id', ["json().from_all().min_by(e -> e.at)"]),
        ('json("p").from_all().slice(0, 3)', ["first 3 values of p"]),
        ('json("p").from_all().slice(-3)', ["last 3 values of p"]),
    ],
)  # fmt: skip
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
        ('json("p").from_all().slice(1)', 24, "slice() of from_all() can be aggregated as slice("),
        ('json("p").from_all().slice(1, 3)', 24, "slice() of from_all() can be aggregated as"),
        ('json("p").from_all().slice(-3, json("p"))', 24, "slice() of from_all() can be"),
        ('json("p").from_all().min_by(x -> x + this.p)', 40, f"the argument of min_by() {THIS}"),
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


KEPT = "root = if batch_index() == 0 { %s } else { deleted() }"


@pytest.mark.parametrize(
    ("lets", "expression", "parts"),
    [
        ('let ms = json("ms").from_all()', "[$ms.avg(), $ms.percentile(0.9)]",
         ["avg of ms", "values of ms"]),
        ('let ms = json("ms").from_all()\nlet slow = $ms.filter(x -> x > 9)', "$slow.length()",
         ["$slow.length()"]),
        ('let sum = json("ms").from_all().sum()', "$sum / batch_size()", ["sum of ms", "count"]),
        ("let least = 3", 'json("ms").from_all().filter(x -> x > $least).sum()',
         ['json("ms").from_all().filter(x -> x > $least).sum()']),
        ("map up { root = this.uppercase() }", 'this.key.apply("up")', []),
        ('map all { root = json("ms").from_all().sum() }', 'this.apply("all")', ["sum of ms"]),
        ("meta key = this.key", "batch_size()", ["count"]),
        ("if this.key == null { meta key = 1 }", "batch_size()", ["count"]),
    ],
)  # fmt: skip
def test_what_stands_before_does_not_matter(lets, expression, parts):
    for text in (f"{lets}\n{KEPT % expression}", f"{KEPT % expression}\n{lets}"):
        found = analyze_pre_aggregation(text)
        if "$" not in expression or text.startswith("let"):
            assert isinstance(found, PreAggregation), found
            assert [str(part) for part in found.aggregates if not part.only_fails] == parts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('let ms = json("ms").from_all().sort()\n' + KEPT % "$ms.index(0)",
         "line 1, column 32: sort() needs all values at once; median(), percentile()"),
        ('let ms = json("ms").from_all()\n' + KEPT % "$ms",
         "line 2, column 32: from_all() can be aggregated when it is followed by"),
        ("let key = this.key\n" + KEPT % 'json("k").from_all().filter(k -> k == $key).length()',
         "the argument of filter() looks at the variable `key`"),
        ('let ms = json("ms").from_all()\nlet ms = 1\n' + KEPT % "$ms.sum()",
         "line 1, column 21: from_all() can be aggregated when"),
        ('let ms = json("ms").from_all()\n' + KEPT % '[var(this.name), $ms.sum()]',
         "line 1, column 21: from_all() can be aggregated when"),
        ("let key = this.key", "it assigns nothing to root, so it keeps all messages; root = if"),
        (KEPT % "batch_size()" + "\nroot.size = batch_size()",
         "line 2, column 1: it assigns root.size, so it may keep more messages than the first"),
        ('root.total = json("ms").from_all().sum()', "line 1, column 1: it assigns root.total, so"),
        ("let a = 1\nroot = if batch_index() == 1 { 1 } else { deleted() }",
         "line 2, column 1: it does not say that it keeps the first message only; root = if"),
    ],
)  # fmt: skip
def test_the_reason_is_the_true_one(text, reason):
    found = analyze_pre_aggregation(text)
    assert isinstance(found, Obstacle)
    assert reason in str(found)
