from __future__ import annotations

from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number
from streamer.window.pack.metadata_codec import (
    add_key_spelling,
    decode_meta,
    encode_meta,
    read_key_spelling,
)


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "\udcff",
        None,
        True,
        1,
        -(2**63),
        2**64,
        -(10**30),
        1.0,
        1e300,
        float("inf"),
        b"\xff\x00",
        [1, [b"x"], {"a": None}],
        {"a": {"b": [1.5]}},
        {"\0": 1},
        {"\0error": "no"},
        {},
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    meta, error = decode_meta(encode_meta({"key": value, "\0error": "a user's"}))
    assert meta == {"key": value, "\0error": "a user's"}
    assert type(meta["key"]) is type(value)
    assert error is None


def test_a_timestamp_keeps_its_zone() -> None:
    meta, _ = decode_meta(encode_meta({"at": Timestamp(5, 3600, "CET", "Europe/Berlin")}))
    at = meta["at"]
    assert (at.ns, at.offset, at.zone, at.location) == (5, 3600, "CET", "Europe/Berlin")


def test_a_number_keeps_its_text() -> None:
    meta, _ = decode_meta(encode_meta({"n": Number("1.50")}))
    assert meta["n"].text == "1.50"


def test_nothing_is_no_bytes_and_an_error_is_kept() -> None:
    assert encode_meta({}) == b""
    assert decode_meta(b"") == ({}, None)
    assert decode_meta(encode_meta({}, "it failed")) == ({}, "it failed")
    assert decode_meta(encode_meta({"a": "b"}, "")) == ({"a": "b"}, "")


def test_what_is_no_value_is_refused_by_name() -> None:
    with pytest.raises(StreamerError, match="metadata holds a complex"):
        encode_meta({"a": 1j})


@pytest.mark.parametrize("meta", [{}, {"a": "b"}, {"\x00key": "x"}, {"n": 2**70}])
def test_the_spelling_of_a_key_is_kept_beside_metadata_and_not_among_it(
    meta: dict[str, object],
) -> None:
    plain = encode_meta(meta)
    spelt = add_key_spelling(plain, b'{"x":1.0}')
    assert decode_meta(spelt) == decode_meta(plain) == (meta, None)
    assert read_key_spelling(spelt) == b'{"x":1.0}'
    assert read_key_spelling(plain) is None


@pytest.mark.parametrize("number", [Number("0.1", 0.10000000149011612), Number("1e400")])
def test_a_number_keeps_its_value_beside_its_text(number):
    found = decode_meta(encode_meta({"n": number}))[0]["n"]
    assert (found.text, float(found)) == (number.text, float(number))
