"""Values of messages come back from the state as they were, and nothing else comes of it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.message_expression import ErrorValue
from streamer.core.json.dump import dump_json
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, UInt
from streamer.window.aggregate.value_codec import (
    estimate_size,
    make_object_array,
    read_values,
    write_values,
)
from tests.examples import examples

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(codec=None, exclude_categories=())),
    st.binary(),
    st.sampled_from(
        [Number("1.50"), Number("0.1", 0.10000000149011612), UInt(2**63), DELETED, NOTHING]
    ),
    st.sampled_from([Timestamp(5, 3600, "CET", "Europe/Berlin"), ErrorValue(1, "no", True, False)]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


def typed(value: Any) -> Any:
    """A value with the type of each part of it, and the text of each number."""
    if isinstance(value, list | tuple):
        return type(value), [typed(item) for item in value]
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, Timestamp):
        return value.__reduce__()
    return type(value), getattr(value, "text", None), value


@settings(max_examples=examples(40, 200))
@given(st.lists(VALUES))
def test_values_come_back_with_their_types_and_spellings(values: list[Any]) -> None:
    found = read_values(write_values(make_object_array(values).tolist()))
    assert typed(found) == typed(values)


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("called",))


def test_nothing_in_a_checkpoint_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match="names builtins.print"):
        read_values(pickle.dumps([Evil()]))
    assert capsys.readouterr().out == ""


def test_a_document_counts_for_more_than_its_text() -> None:
    document = {"key": "x" * 1000}
    assert estimate_size([document] * 100) > 2 * 100 * len(dump_json(document))
