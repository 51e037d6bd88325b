"""Optimisations change no result and no error, and no mapping changes a document it doesn't own."""

import copy
from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError
from streamer.bloblang.compiler.options import ALL_OPTIMISATIONS, NO_OPTIMISATIONS, Optimisations
from streamer.bloblang.environment import MappingEnvironment
from streamer.bloblang.mapping import Mapping
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.generating import documents, mappings
from tests.bloblang.running import execution
from tests.examples import examples

# Statements that read and write the same few places, where copies and kept look-ups could go wrong.
_PLACES = ["", ".a", ".b", ".c", ".a.b", ".a.c", ".a.b.c", ".c.0", ".b.0.a"]
_VALUES = st.sampled_from(
    [
        *(f"this{place}" for place in _PLACES),
        *(f"root{place}" for place in _PLACES),
        *("$v", "$v.a", "deleted()", "nothing()", "null", "[]", '{"b": this.a}', '{"c": {"c": 1}}'),
        *("this.a + this.b", "this.a - 1", "1.5 * this.b", "this.a * this.b", "this.a / 2"),
        *("this.a.uint64() + this.b", "(this.a.uint64() + 1) * 2.5", "this.a.int64() * this.b"),
        *("this.a.number() / this.b", "(this.a + 1) / (this.b - 1)", "this.a.uint64() > this.b"),
        *("this.a % 3", "this.a / this.b", "4 - this.c", "this.a + 0.5 + this.b", "-this.a"),
        *("this.a > 1", "this.a <= this.b", "2.5 >= this.b", "this.a == null", "this.b != true"),
        *('this.a == "x"', '"x" + this.a', 'this.b + "y" + this.c', "this.a && this.b || this.c"),
        *('this.a | this.b | "none"', "this.c.catch(this.a)", "this.a.or(root.b)"),
        *("this.a.length()", "this.a.uppercase()", 'this.b.split(",")', "this.a.slice(0, 2)"),
        *("this.c.index(1)", "this.c.index(-1)", "this.a.string()", "this.a.trim()"),
        *('this.a.contains("a")', 'this.c.exists("b")', 'this.a.replace_all(",", ";")'),
        *('"A b".lowercase()', '"1h".parse_duration()', "1 + 2 * 3.5", '"x".length() + 1'),
        *("this.a.not_null()", 'this.a.ts_parse("2006-01-02").ts_unix()', "this.a.ts_unix()"),
        *("this.c.map_each(v -> v * 2)", "this.c.map_each(v -> v.a | this.a)"),
        *("this.c.filter(v -> v > 1)", "this.c.map_each(if this == 1 { deleted() } else { this })"),
        *("if this.a > this.b { this.c } else if this.c { root.a }", "this.a.(x -> x + this.b)"),
        *('match this.a { 1 => root, "x" => deleted(), this.b => 2.5, _ => this }',),
    ]
)
_FORMS = st.one_of(
    st.tuples(st.sampled_from(_PLACES), _VALUES).map(lambda p: f"root{p[0]} = {p[1]}"),
    _VALUES.map(lambda value: f"let v = {value}"),
    _VALUES.map(lambda value: f"meta k = {value}"),
)
_BLOCKS = st.tuples(_VALUES, _FORMS, _FORMS).map(
    lambda p: f"if {p[0]} == 1 {{\n  {p[1]}\n}} else {{\n  {p[2]}\n}}"
)
ordinary = st.lists(_FORMS | _FORMS | _BLOCKS, min_size=1, max_size=7).map(
    lambda lines: "\n".join(["let v = this.b", *lines])
)

_leaf = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 2, -3, 2.5, 1e300, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.sampled_from(["", "x", "a,b", " é ", "2020-08-14", "2020-08-14T05:54:23Z", "12", "007"]),
)
_lists = st.lists(_leaf | st.dictionaries(st.sampled_from("ab"), _leaf, max_size=2), max_size=3)
_inner = st.recursive(
    _leaf | _lists, lambda x: st.dictionaries(st.sampled_from("abc"), x, max_size=3), max_leaves=4
)
objects = st.dictionaries(st.sampled_from("abc"), _inner, max_size=3)


def outcome(text, options, docs, onto):
    """Return what a mapping makes of two messages that share a part, or the error's text."""
    shared = [{"a": [1, {"b": 2}]}, "x"]
    batch = [Message.from_value(doc) for doc in (*docs, {"shared": shared}, shared)]
    before = copy.deepcopy([message.doc for message in batch])
    mapping = Mapping(text, MappingEnvironment(False, ""), options)
    assume(not mapping.uses.random)
    ex = execution()
    results = []
    for index in range(len(docs)):
        run = mapping.mutate if onto else mapping.apply
        try:
            made = run(batch, index, ex)
        except MessageError as e:
            results.append(str(e))
        else:
            results.append(made and (_raw(made), dict(made.meta)))
    assert [message.doc for message in batch] == before
    assert list(map(_types, before)) == [_types(message.doc) for message in batch]
    return results


def _raw(message):
    try:
        return message.raw
    except ValueError as e:  # NaN has no JSON form
        return str(e)


def _types(value):
    """Return the types inside a value, which == does not tell apart."""
    if isinstance(value, dict):
        return {key: _types(inner) for key, inner in value.items()}
    return [_types(inner) for inner in value] if isinstance(value, list) else type(value)


def same(text, docs, onto, *different):
    """Hold a mapping's outcome with all optimisations against that with others."""
    try:
        wanted = outcome(text, NO_OPTIMISATIONS, docs, onto)
    except BloblangError:
        return
    for options in (ALL_OPTIMISATIONS, *different):
        assert outcome(text, options, docs, onto) == wanted, (options, text)


_pairs = st.lists(objects | _inner, min_size=2, max_size=2)
_each = [replace(ALL_OPTIMISATIONS, **{field.name: False}) for field in fields(Optimisations)]


@settings(max_examples=examples(20, 150), deadline=None)
@given(ordinary, _pairs, st.booleans())
def test_ordinary_mappings_do_the_same_without_optimisations(text, docs, onto):
    same(text, docs, onto)


@settings(max_examples=examples(10, 60), deadline=None)
@given(mappings, st.lists(documents, min_size=2, max_size=2), st.booleans())
def test_any_mapping_does_the_same_without_optimisations(text, docs, onto):
    same(text, docs, onto)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(ordinary, _pairs, st.booleans())
def test_many_ordinary_mappings_do_the_same_with_each_optimisation_off(text, docs, onto):
    same(text, docs, onto, *_each)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(mappings, st.lists(documents, min_size=2, max_size=2), st.booleans())
def test_many_mappings_do_the_same_with_each_optimisation_off(text, docs, onto):
    same(text, docs, onto, *_each)


def test_the_switches_are_told_apart_in_the_source():
    text = 'root = this\nroot.a = "x".uppercase() + "y"\nroot.c = this.d.re_match("a")'
    sources = {
        Mapping(text, MappingEnvironment(), options).source
        for options in (ALL_OPTIMISATIONS, NO_OPTIMISATIONS, *_each)
    }
    assert len(sources) == 2 + len(_each)
