"""Values as YAML for people: what is written is read back the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamer.config.yaml_writer import Block, Entry, format_yaml

TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), include_characters="\n\t \r"),
    max_size=20,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_is_read_back_as_it_was(value: Any) -> None:
    assert yaml.safe_load(format_yaml(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "a\nb",
        "a\nb\n",
        "a\n\nb\n",
        " a\nb",
        "a\nb\n\n",
        "a\n b\n",
        "a \nb",
        "a\n \nb",
        "\na",
        "# a\n",
    ],
)
def test_a_text_of_several_lines_is_read_back_as_it_was(text: str) -> None:
    for value in (text, [text], {"a": text}, [{"a": [text]}]):
        assert yaml.safe_load(format_yaml(value)) == value


def test_comments_stand_above_fields_and_remarks_behind_them() -> None:
    mapping = Block((Entry("mapping", "root.a = 1\nroot.b = 2", "Maps."),))
    block = Block(
        (
            Entry("input", {"stdin": {}}, "Where from."),
            Entry("size", "10s", "How long.", "required"),
            Entry("label", "a\nb", is_commented_out=True),
            Entry("processors", [mapping, {"noop": {}}]),
        )
    )
    assert format_yaml(block) == (
        "# Where from.\n"
        "input:\n"
        "  stdin: {}\n"
        "# How long.\n"
        "size: 10s # required\n"
        "# label: |-\n"
        "#   a\n"
        "#   b\n"
        "processors:\n"
        "  # Maps.\n"
        "  - mapping: |-\n"
        "      root.a = 1\n"
        "      root.b = 2\n"
        "  - noop: {}\n"
    )
