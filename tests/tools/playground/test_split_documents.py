from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.errors import StreamerError
from streamer.tools.playground.split_documents import Split, split_documents
from tests.examples import examples


class Arriving:
    """A pipe that brings one part at a time."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def read1(self, size: int = -1, /) -> bytes:
        return self._parts.pop(0) if self._parts else b""


def found(*parts: bytes, split: Split = "auto", longest: int = 0) -> list[list[bytes]]:
    return list(split_documents(Arriving(*parts), split, longest))


def flat(*parts: bytes, split: Split = "auto", longest: int = 0) -> list[bytes]:
    return [document for some in found(*parts, split=split, longest=longest) for document in some]


PRETTY = b'{\n  "a": [\n    "}"\n  ]\n}\n{\n  "a": []\n}\n'


def test_lines_are_documents_and_the_last_one_needs_no_end() -> None:
    assert flat(b'{"a":1}\r\n\n{"a":2}') == [b'{"a":1}', b"", b'{"a":2}']
    assert flat(b"") == []


def test_what_has_arrived_is_handed_on_before_more_is_waited_for() -> None:
    assert found(b"1\n2", b"2\n3\n") == [[b"1"], [b"22", b"3"]]
    assert found(b"[\n1]\n[", b"\n2]\n") == [[b"[\n1]"], [b"[\n2]"]]


def test_documents_over_several_lines_are_found_by_the_first_line() -> None:
    assert [json.loads(text) for text in flat(PRETTY)] == [{"a": ["}"]}, {"a": []}]


@pytest.mark.parametrize(
    "first",
    [b'{"a":', b'{"a": "x', b"[2026-11-21] {", b"nope", b'{"a":1}', b"[1,2]", b"{]{"],
)
def test_other_first_lines_are_documents_by_themselves(first: bytes) -> None:
    assert flat(first + b"\n{\n}\n") == [first, b"{", b"}"]


def test_documents_may_share_a_line_and_scalars_have_their_own() -> None:
    text = b'{"a":1}{"a":2} [3,\n4] 5\n"six {"\n'
    documents = [b'{"a":1}', b'{"a":2}', b"[3,\n4]", b"5", b'"six {"']
    assert flat(text, split="documents") == documents


def test_a_document_that_is_not_closed_is_handed_on_as_it_is() -> None:
    assert flat(b'{"a":\n[1\n', split="documents") == [b'{"a":\n[1']


def test_the_whole_input_is_one_document_without_its_last_line_end() -> None:
    assert flat(b"a\nb", b"\nc\n", split="whole") == [b"a\nb\nc"]
    assert flat(b"", split="whole") == []


@pytest.mark.parametrize(
    ("split", "text", "before"),
    [
        ("lines", b"1234567\n12345678\n1\n", [b"1234567"]),
        ("lines", b"1234567\n12345678", [b"1234567"]),
        ("documents", b"[12]\n[1,\n2,\n3]\n", [b"[12]"]),
        ("whole", b"12345678", []),
        ("whole", b"1234\n6789\n1", []),
    ],
)
def test_a_document_that_is_too_long_ends_the_input_after_those_before_it(
    split: Split, text: bytes, before: list[bytes]
) -> None:
    seen: list[bytes] = []
    with pytest.raises(StreamerError, match=rf"^document {len(before) + 1} is too long: token"):
        for documents in split_documents(Arriving(text), split, 8):
            seen += documents
    assert seen == before


def test_documents_as_long_as_is_allowed_pass() -> None:
    assert flat(b"1234567\n", longest=8) == [b"1234567"]
    assert flat(b"1234567\n", split="whole", longest=8) == [b"1234567"]


documents = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).filter(lambda value: isinstance(value, list | dict))


@settings(max_examples=examples(20, 100), deadline=None)
@given(st.lists(documents), st.integers(0, 4), st.lists(st.integers(1, 40)))
def test_documents_are_found_however_they_are_written_and_arrive(
    values: list[object], indent: int, sizes: list[int]
) -> None:
    text = "\n".join(json.dumps(value, indent=indent or None) for value in values).encode()
    parts = []
    for size in sizes:
        parts.append(text[:size])
        text = text[size:]
    arriving = [part for part in (*parts, text) if part]
    assert [json.loads(one) for one in flat(*arriving, split="documents")] == values
