"""A character of a scalar's text is found again where it stands in the file."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Scalar
from streamer.config.source_map import Source
from streamer.config.text_offsets import find_offset
from streamer.config.yaml_reader import read_yaml


def scalar(text: str) -> Scalar:
    root = read_yaml(Source("f", text), Findings())
    assert isinstance(root, Mapping)
    found = root.entries["k"][1]
    assert isinstance(found, Scalar)
    return found


def offset_of(node: Scalar, mark: str) -> int:
    before = node.text[: node.text.index(mark)]
    return find_offset(node, before.count("\n") + 1, len(before) - before.rfind("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "k: abc @ def",
        "k: 'it''s @'",
        'k: "\\u00e9\\x41 \\n\\t @"',
        'k: "a \\\n   b @"',
        "k: a\n  b\n\n  c @",
        "k: 'a\n\n   b  \n  @'",
        "k: |\n  a\n  @",
        "k: |-\n  @",
        "k: |2\n    a\n    @",
        "k: |\n\n\n  a\n    b\n\n   @\n",
        "k: |  # why\n  é😀\n  x@",
        "k: |\r\n  a\r\n  b @\r\n",
        "k: >\n  a\n  b @",
        "k: >-\n  a\n\n  b\n\n\n    c\n\n  d @",
        "x:\n  k:\n".replace("x:\n  k:", "k:") + "  a @",
        "{k: a @}",
    ],
)
def test_the_mark_is_found_again(text: str) -> None:
    node = scalar(text)
    assert offset_of(node, "@") == text.index("@")


def test_the_end_of_the_text_is_where_the_scalar_ends() -> None:
    text = "k: 'ab' # @"
    assert find_offset(scalar(text), 1, 3) == text.index("' #")
    assert find_offset(scalar("k: |\n  ab\n"), 1, 3) == len("k: |\n  ab")


def test_a_place_that_is_not_in_the_text_is_the_scalar_itself() -> None:
    assert find_offset(scalar("k: ab"), 7, 1) == 3


LINES = st.lists(st.text(alphabet="ab \\'\"#:", max_size=6), max_size=5)


@settings(max_examples=150, deadline=None)
@given(LINES, st.sampled_from(["'", '"', "|", ">"]), st.booleans())
def test_every_character_is_found_however_the_text_is_written(
    lines: list[str], style: str, crlf: bool
) -> None:
    value = "\n".join(lines) + "@"
    text = yaml.dump({"k": value}, default_style=style, width=12, allow_unicode=True)
    if crlf:
        text = text.replace("\n", "\r\n")
    entries = read_yaml(Source("f", text), Findings())
    assert isinstance(entries, Mapping)
    node = entries.entries["k"][1]
    assert isinstance(node, Scalar)
    assert node.text == value
    assert offset_of(node, "@") == text.index("@")
