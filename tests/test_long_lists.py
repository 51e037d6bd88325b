"""What the suite says of long lists that differ."""

from __future__ import annotations

import pytest

from tests.long_lists import where_they_part


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        (
            [*range(300), *range(652, 900)],
            [*range(548)],
            [
                "548 items == 548 items",
                "the first 300 are the same",
                "then left has 652, 653, 654, 655, 656",
                "then right has 300, 301, 302, 303, 304",
            ],
        ),
        (
            [*range(1_200)],
            [*range(1_202)],
            [
                "1,200 items == 1,202 items",
                "the first 1,200 are the same",
                "then left has no more",
                "then right has 1200, 1201",
            ],
        ),
    ],
)
def test_two_long_lists_are_told_by_where_they_part(
    left: list[int], right: list[int], told: list[str]
) -> None:
    assert where_they_part(left, right) == told


def test_short_lists_are_left_to_pytest() -> None:
    assert where_they_part([*range(200)], []) is None
