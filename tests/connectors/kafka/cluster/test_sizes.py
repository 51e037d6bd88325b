"""Sizes as text."""

from __future__ import annotations

import pytest

from streamer.connectors.kafka.cluster.sizes import parse_size, size_check


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1,000", 1000),
        ("1MiB", 1 << 20),
        ("50mib", 50 << 20),
        ("100 MB", 100_000_000),
        ("1.5k", 1500),
        ("2Ki", 2048),
        ("3B", 3),
        (" 1 g ", 10**9),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1x", "-1", "1 MiBs", "1 2"])
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size such as 1MiB"):
        parse_size(text)


def test_bounds_are_checked():
    check = size_check(10, 1000)
    assert check("10") is None and check("1k") is None
    assert check("9") == "is 9; expected 10 to 1000 bytes"
    assert check("1KiB") == "is 1KiB; expected 10 to 1000 bytes"
