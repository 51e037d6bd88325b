from __future__ import annotations

import pickle

import pytest

from streamer.sdk.spec import NO_PLACE, Kind, ParsedComponent, ParsedFields

PARSED = ParsedFields(
    {"size": 5, "password": "hunter2", "child": ParsedFields({"a": 1})}, {"size": (3, 7)}
)


def test_it_reads_like_a_mapping() -> None:
    assert PARSED["size"] == 5
    assert list(PARSED) == ["size", "password", "child"]
    assert PARSED["child"] == {"a": 1}
    with pytest.raises(KeyError):
        PARSED["none"]


def test_it_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PARSED["size"] = 6  # type: ignore[index]


def test_it_knows_what_was_written_and_where() -> None:
    assert PARSED.is_given("size")
    assert PARSED.place("size") == (3, 7)
    assert not PARSED.is_given("password")
    assert PARSED.place("password") is NO_PLACE


def test_it_survives_pickling_with_its_places() -> None:
    copy = pickle.loads(pickle.dumps(PARSED))
    assert copy == PARSED
    assert copy.place("size") == (3, 7)


def test_its_text_shows_no_values() -> None:
    component = ParsedComponent(Kind.OUTPUT, "x", config=PARSED)
    assert "hunter2" not in f"{PARSED} {component}"
    assert "size" in str(PARSED)
