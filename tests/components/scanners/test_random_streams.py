"""Random streams in blocks of any size, and gone on with from any mark, against plain parsers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.gocsv import read_csv
from streamer.core.json.dump import dump_json
from streamer.sdk.input.scanning import START_MARK, ScanError, ScanMark

from .cutting import all_of, cuts, messages, scanner, stored

pytestmark = pytest.mark.slow

CSV = scanner("csv: {parse_header_row: false}")
LAZY = scanner("csv: {parse_header_row: false, lazy_quotes: true}")
DOCUMENTS = scanner("json_documents: {}")
ARRAY = scanner("json_array: {}")
LINES = scanner("lines: {custom_delimiter: 'aba'}")

SIZES = st.integers(1, 9)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
SPACE = st.sampled_from(["", " ", "\n", "\r\n\t "])


def whole(of: Any, data: bytes, **how: Any) -> tuple[list[bytes], bool]:
    """Return the messages, and whether the scanner gave up behind them."""
    found: list[bytes] = []
    try:
        for cut in cuts(of, data, **how):
            found += [message.raw for message in messages(cut)]
    except ScanError:
        return found, True
    return found, False


@settings(deadline=None)
@given(st.text(alphabet='ab,"\n\r', max_size=40), SIZES, st.booleans())
def test_rows_are_those_of_the_parser_of_whole_texts(text: str, size: int, lazy: bool) -> None:
    data = text.encode()
    found, failed = whole(LAZY if lazy else CSV, data, size=size, most=2)
    try:
        expected = read_csv(data, b",", lazy)
    except QueryError:
        assert failed
        return
    assert not failed
    assert found == [dump_json([field.decode() for field in row]) for row in expected]


@settings(deadline=None)
@given(st.lists(st.tuples(VALUES, SPACE, st.booleans()), max_size=6), SIZES)
def test_documents_are_found_whatever_stands_between_them(
    documents: list[tuple[Any, str, bool]], size: int
) -> None:
    text = ""
    for document, space, pretty in documents:
        # A number, a word or a text may need something between it and the next document.
        text += json.dumps(document, indent=1 if pretty else None) + (space or " ")
    expected = [dump_json(document) for document, _, _ in documents]
    assert whole(DOCUMENTS, text.encode(), size=size, most=2) == (expected, False)


@settings(deadline=None)
@given(st.lists(st.lists(VALUES, max_size=4), max_size=3), SPACE, SIZES)
def test_elements_are_found_in_arrays_that_follow_one_another(
    arrays: list[list[Any]], space: str, size: int
) -> None:
    text = space.join(json.dumps(array, indent=1) for array in arrays)
    found, failed = whole(ARRAY, text.encode(), size=size, most=2)
    assert not failed
    assert [json.loads(raw) for raw in found] == [one for array in arrays for one in array]


@settings(deadline=None)
@given(st.text(alphabet="ab", max_size=30), SIZES)
def test_delimiters_that_may_overlap_count_from_the_left(text: str, size: int) -> None:
    expected = text.encode().split(b"aba")
    # A last line that is empty is none.
    expected = expected if expected[-1] else expected[:-1]
    assert whole(LINES, text.encode(), size=size, most=2) == (expected, False)


@settings(deadline=None)
@given(st.data())
def test_any_mark_is_a_place_to_go_on_from(data: Any) -> None:
    of = data.draw(st.sampled_from([LAZY, DOCUMENTS, ARRAY, LINES]))
    alphabet = {LAZY: 'a,"\n', LINES: "ab"}.get(of, '[]{}",:1 \n')
    text = data.draw(st.text(alphabet=alphabet, max_size=30)).encode()
    marks: list[ScanMark] = [START_MARK]
    found: list[tuple[bytes, Any]] = []
    try:
        for cut in cuts(of, text, size=3, most=2):
            marks.append(cut.mark)
            found += [(message.raw, message.error) for message in messages(cut)]
    except ScanError:
        return
    mark = data.draw(st.sampled_from(marks))
    rest = all_of(of, text, since=stored(mark), size=data.draw(SIZES))
    assert [(message.raw, message.error) for message in rest] == found[mark.number :]
