"""`split`: by number, by bytes, or whichever is reached first."""

from __future__ import annotations

import pytest

from .conftest import Make, Run, messages, payloads


@pytest.mark.parametrize(
    ("yaml", "sizes"),
    [
        ("split: {}", [1, 1, 1, 1, 1]),
        ("split: {size: 2}", [2, 2, 1]),
        ("split: {size: 5}", [5]),
        ("split: {size: 0}", [5]),
        ("split: {size: 0, byte_size: 7}", [2, 2, 1]),
        ("split: {size: 1, byte_size: 100}", [1, 1, 1, 1, 1]),
        ("split: {size: 3, byte_size: 6}", [2, 2, 1]),
        ("split: {size: 3, byte_size: 100}", [3, 2]),
    ],
)
def test_batches_are_cut_before_the_message_that_is_one_too_many(
    yaml: str, sizes: list[int], make: Make, a_run: Run
) -> None:
    batch = messages("aaa", "bbb", "ccc", "ddd", "eee")
    found = make(yaml).process(batch, a_run.ex)
    assert [len(part) for part in found] == sizes
    assert [text for part in payloads(found) for text in part] == [
        "aaa",
        "bbb",
        "ccc",
        "ddd",
        "eee",
    ]
    assert a_run.logged == []


def test_a_message_larger_than_the_limit_is_a_batch_with_a_warning(make: Make, a_run: Run) -> None:
    found = make("split: {size: 0, byte_size: 3}").process(messages("aaaaa", "b"), a_run.ex)
    assert payloads(found) == [["aaaaa"], ["b"]]
    text = "A single message exceeds the target batch byte size of '3', actual size: '5'"
    assert a_run.logged == [("WARN", text)]
