"""Regular expressions: Python's engine is asked only where it says what RE2 says, and as fast."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.runtime.python_regex import translate_to_python
from streamer.bloblang.runtime.regex import Matcher
from tests.examples import examples

_CLASSES = ["a", "b", "-", " ", r"\d", r"\w", r"\s", r"\S", r"\D", r"\W", ".", "[ab]", "[^a]"]
_CLASSES += ["[a-c1]", r"[^\d ]", r"[\w.-]", r"\.", r"\[", r"[^\]]", "[-a]", "x", "1", r"\t"]
_atoms = st.tuples(
    st.sampled_from(_CLASSES), st.sampled_from(["", "", "", "+", "*", "?", "{2}", "{1,2}", "{1,}"])
).map("".join)
_rows = st.lists(_atoms, min_size=1, max_size=4).map("".join)
_parts = st.one_of(
    _rows,
    _rows.map(lambda row: f"({row})"),
    _rows.map(lambda row: f"(?:{row})"),
    st.sampled_from(["(a|b1)", "(?P<w>ab|a)", "(?:1|x |b)"]),
)
expressions = st.tuples(
    st.sampled_from(["", "^"]), st.lists(_parts, min_size=1, max_size=3), st.sampled_from(["", "$"])
).map(lambda p: p[0] + "".join(p[1]) + p[2])
texts = st.text(st.sampled_from("ab1x -.[]\t\n\x0b\x1c_é"), max_size=12)


def by_re2(pattern):
    matcher = Matcher(pattern)
    matcher._python_search = matcher._python = None
    return matcher


@settings(max_examples=examples(100, 500), deadline=None)
@given(expressions, st.lists(texts, min_size=1, max_size=5))
def test_both_engines_find_the_same(pattern, subjects):
    if pattern.count("(?P<w>") > 1:
        return
    quick, slow = Matcher(pattern), by_re2(pattern)
    for text in subjects:
        assert quick.make_tester()(text) is slow.make_tester()(text)
        assert quick.make_namer()(text) == slow.make_namer()(text)
        assert quick.find_first(text) == slow.find_first(text)
        assert list(quick.find_places(text)) == list(slow.find_places(text))


@pytest.mark.parametrize(
    "pattern",
    [
        r'^(?P<ip>\S+) \S+ (?P<user>\S+) \[(?P<at>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+)',
        r"[0-9]+",
        r"(?P<level>INFO|WARN|ERROR): (.+)",
        r"\d{4}-\d{2}-\d{2}",
        r"^[a-z]+$",
        r"key=(\w+)",
    ],
)
def test_ordinary_expressions_run_on_pythons_engine(pattern):
    assert translate_to_python(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*a",  # two ways to share the letters
        r"\S+\w",
        r"(a+)+b",
        r"(a|a)*",
        r"a?b?a",
        r"a*",  # may be empty
        r"a+?",
        r"(?i)a",
        r"\bfoo\b",
        r"\pL",
        r"é",
        r"[[:alpha:]]+",
        r"a|b",
        r"a$b",
        r"x{,3}",
        r"\Aa",
    ],
)
def test_others_are_left_to_re2(pattern):
    assert translate_to_python(pattern) is None


@pytest.mark.parametrize("pattern", [r"^(\d+) (\d+)$", r"[a-z]+\d", r"(x+x+)+y", r"\d+ x"])
@pytest.mark.parametrize("size", [900, 60_000, 3_000_000])
def test_no_text_takes_long(pattern, size):
    matcher = Matcher(pattern)
    began = time.process_time()
    for letter in "ax1":
        matcher.make_tester()(letter * size)
    assert time.process_time() - began < 0.5


def test_an_empty_match_behind_another_does_not_count():
    assert [place[:2] for place in Matcher("a*").find_places("baac")] == [(0, 0), (1, 3), (4, 4)]
    assert [place[:2] for place in Matcher("a*").find_places("éaé")] == [(0, 0), (1, 2), (3, 3)]
