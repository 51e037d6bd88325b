"""What is left out of a micro-batch by a stream that goes on without what is gone."""

from __future__ import annotations

import pytest

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.data_loss import SkippedMessages, skipped_messages

P: PartitionRef = ("t", 0)


@pytest.mark.parametrize(
    ("stood", "end", "begin", "remade", "messages", "text"),
    [
        (10, 20, 10, False, None, ""),
        (10, 20, 0, False, None, ""),
        (10, 20, 15, False, 5, "t:0 stood at 10 and begins at 15"),
        # The next micro-batch has what is gone beyond this one's end.
        (10, 20, 150, False, 10, "t:0 stood at 10 and begins at 150"),
        (10, 10, 150, False, 0, "t:0 stood at 10 and begins at 150"),
        (10, 20, 2, True, 8, "t was deleted and recreated; t:0, which stood at 10, goes on at 10"),
        (10, 3, 1, True, 2, "goes on at 3, and 2 messages from 1 on are not read"),
        # Its identity is not known, but it can be no other.
        (10, 3, 0, False, 3, "goes on at 3, and 3 messages from 0 on are not read"),
        (10, None, None, False, 0, "t:0 is gone; what came behind 10 is not read"),
    ],
)
def test_what_is_left_out_follows_from_where_partitions_begin_and_end(
    stood: int, end: int | None, begin: int | None, remade: bool, messages: int | None, text: str
) -> None:
    ends = {} if end is None else {P: end}
    begins = {} if begin is None else {P: begin}
    found = skipped_messages({P: stood}, ends, begins, {"t"} if remade else set())
    if messages is None:
        assert found == []
        return
    [one] = found
    assert one[:4] == ("t", "0", messages, begin or 0) and text in one.text


def test_every_partition_is_told() -> None:
    found = skipped_messages(
        {("b", 1): 5, ("a", 0): 5, P: 5},
        {("b", 1): 9, ("a", 0): 9, P: 9},
        {
            ("b", 1): 6,
            ("a", 0): 7,
            P: 5,
        },
        (),
    )
    assert [(one.topic, one.partition, one.messages) for one in found] == [
        ("a", "0", 2),
        ("b", "1", 1),
    ]
    assert isinstance(found[0], SkippedMessages)
