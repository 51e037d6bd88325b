"""The lines that end a stream because messages are gone."""

from __future__ import annotations

import pytest

from streamer.connectors.kafka.input.data_loss import (
    DataLostError,
    check_topics,
    lost_messages_text,
    recreated_topics_text,
)

AT = {("t", number): 10 for number in range(5)} | {("u", 0): 3}


def test_what_is_missing_is_named_with_offsets_and_the_way_on() -> None:
    now = {("t", 0): 15}
    assert lost_messages_text("kafka", [("t", 0), ("u", 0)], AT, now, "begins at") == (
        "input kafka: unread messages are gone: t:0 stands at 10 and begins at 15; "
        "u:0 stands at 3 and is gone; use another checkpoint, or set fail_on_data_loss: false to "
        "continue with the remaining messages"
    )
    text = lost_messages_text("kafka", sorted(AT), AT, AT, "ends at")
    assert "t:2 stands at 10 and ends at 10, and 3 more; use" in text and "t:3" not in text


def test_a_topic_that_was_made_anew_is_named_with_all_that_stood_in_it() -> None:
    assert recreated_topics_text("kafka", {"u"}, AT, {("u", 0): 1}) == (
        "input kafka: the topic 'u' was deleted and recreated, so that the checkpoint's offsets "
        "mean other messages: u:0 stands at 3 and begins anew at 1; use another checkpoint, or "
        "set fail_on_data_loss: false to continue from those offsets"
    )


@pytest.mark.parametrize(
    ("known", "now", "come_and_go", "wrong"),
    [
        ({"t": "a"}, {"t": "a", "u": "b"}, False, ""),
        ({"t": ""}, {"t": "a"}, False, ""),
        ({"t": "a"}, {"t": ""}, False, ""),
        ({"t": "a"}, {}, True, ""),
        ({"t": "a"}, {"u": "b"}, False, "offsets of the topic 't', which the field topics no long"),
        ({"t": "a"}, {"t": "b"}, False, "the topic 't' was deleted and recreated"),
        ({"t": "a"}, {"t": "b"}, True, "the topic 't' was deleted and recreated"),
    ],
)
def test_a_checkpoint_is_of_the_topics_that_are_there(
    known: dict[str, str], now: dict[str, str], come_and_go: bool, wrong: str
) -> None:
    if not wrong:
        check_topics("kafka", known, now, come_and_go)
        return
    with pytest.raises(DataLostError, match=f"^input kafka: .*{wrong}.*fail_on_data_loss: false"):
        check_topics("kafka", known, now, come_and_go)
