"""Processors of whole batches: places in them, their bounds, and groups of processors."""

from __future__ import annotations

import pytest

from streamer.core.message import Message
from streamer.sdk.processing import run_each

from .conftest import Make, Run, messages, payloads


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, "xab"),
        (1, "axb"),
        (2, "abx"),
        (9, "abx"),
        (-1, "abx"),
        (-2, "axb"),
        (-3, "xab"),
        (-9, "xab"),
    ],
)
def test_a_message_is_put_where_the_index_says(
    index: int, expected: str, make: Make, a_run: Run
) -> None:
    insert = make(f"insert_part: {{index: {index}, content: x}}")
    [found] = insert.process(messages("a", "b"), a_run.ex)
    assert "".join(message.raw.decode() for message in found) == expected


def test_the_new_message_is_made_of_the_first_one(make: Make, a_run: Run) -> None:
    batch = [Message(b'{"n":1}', {"k": "v"}), Message(b'{"n":2}', {"k": "w"})]
    insert = make("insert_part: {content: '${! this.n } of ${! batch_size() }'}")
    [found] = insert.process(batch, a_run.ex)
    assert (found[2].raw, dict(found[2].meta)) == (b"1 of 2", {"k": "v"})


def test_content_that_cannot_be_made_leaves_the_batch(make: Make, a_run: Run) -> None:
    batch = messages("nope")
    assert make("insert_part: {content: '${! this.n }'}").process(batch, a_run.ex) == [batch]
    assert a_run.logged[0][1].startswith("Content interpolation error: ")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("[2, 0, 1]", [["c", "a", "b"]]),
        ("[-1, 0, -1]", [["d", "a", "d"]]),
        ("[1, 9, -5]", [["b"]]),
        ("[9]", []),
        ("[]", []),
    ],
)
def test_messages_are_picked_in_the_order_of_the_places(
    parts: str, expected: list[list[str]], make: Make, a_run: Run
) -> None:
    select = make(f"select_parts: {{parts: {parts}}}")
    assert payloads(select.process(messages("a", "b", "c", "d"), a_run.ex)) == expected


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ("{}", ""),
        ("{min_part_size: 2, max_part_size: 3, min_parts: 2, max_parts: 2}", ""),
        ("{min_parts: 3}", "message parts below minimum (3): 2"),
        ("{max_parts: 1}", "message parts exceeding limit (1): 2"),
        ("{min_part_size: 3}", "message part size (3 -> 1073741824): 2"),
        ("{max_part_size: 2}", "message part size (1 -> 2): 3"),
    ],
)
def test_batches_out_of_bounds_are_filtered_with_the_reason_in_the_log(
    bounds: str, reason: str, make: Make, a_run: Run
) -> None:
    batch = messages("aaa", "bb")
    found = make(f"bounds_check: {bounds}").process(batch, a_run.ex)
    assert found == ([] if reason else [batch])
    expected = [("DEBUG", f"Rejecting message due to {reason}")] if reason else []
    assert a_run.logged == expected


def test_an_empty_message_is_out_of_bounds_unless_it_may_be_empty(make: Make, a_run: Run) -> None:
    batch = messages("")
    assert make("bounds_check: {}").process(batch, a_run.ex) == []
    assert make("bounds_check: {min_part_size: 0}").process(batch, a_run.ex) == [batch]


def test_sleep_waits_at_each_message(make: Make, a_run: Run) -> None:
    slept: list[int] = []
    a_run.ex.sleep = slept.append
    batch = messages('"1s"', '"20ms"', "7", '"nope"', '"-1s"')
    assert make("sleep: {duration: '${! this.uppercase().lowercase() }'}").process(
        batch, a_run.ex
    ) == [batch]
    assert slept == [1_000_000_000, 20_000_000]
    said = [text.partition(":")[0] for _, text in a_run.logged]
    assert said == ["Period interpolation error", "Failed to parse duration"]


def test_for_each_shows_each_message_as_a_batch_by_itself(make: Make, a_run: Run) -> None:
    yaml = "for_each:\n  - mapping: 'root = \"%v of %v\".format(batch_index(), batch_size())'"
    found = make(yaml).process(messages("a", "b", "c"), a_run.ex)
    assert payloads(found) == [["0 of 1", "0 of 1", "0 of 1"]]


def test_for_each_joins_all_that_comes_out(make: Make, a_run: Run) -> None:
    yaml = "for_each:\n  - unarchive: {format: lines}\n  - select_parts: {parts: [1, 0]}"
    each = make(yaml)
    found = each.process(messages("a\nb", "c", "d\ne\nf"), a_run.ex)
    assert payloads(found) == [["b", "a", "c", "e", "d"]]
    # What may make several messages of one cannot take many batches of one at once.
    assert not hasattr(each, "process_each")
    assert make("for_each:\n  - mapping: root = deleted()").process(messages("a"), a_run.ex) == []


def test_a_group_does_what_its_processors_do(make: Make, a_run: Run) -> None:
    yaml = "processors:\n  - split: {size: 2}\n  - archive: {format: lines}\n  - noop: {}"
    found = make(yaml).process(messages("a", "b", "c"), a_run.ex)
    assert payloads(found) == [["a\nb"], ["c"]]
    batch = messages("a", "b")
    assert make("processors: []").process(batch, a_run.ex) == [batch]


def test_a_group_of_processors_of_one_message_takes_many_at_once(make: Make, a_run: Run) -> None:
    group = make("processors:\n  - mapping: root = content().uppercase()\n  - noop: {}")
    made = group.process_each(messages("a", "b"), a_run.ex)  # type: ignore[attr-defined]
    assert [message.raw for message in made] == [b"A", b"B"]


@pytest.mark.parametrize("around", ["for_each", "try"])
def test_messages_that_come_of_one_stay_one_batch_behind_a_list_of_processors(
    around: str, make: Make, a_run: Run
) -> None:
    several = make(f"{around}:\n  - unarchive: {{format: lines}}")
    [made] = run_each([several], messages("a\nb"), a_run.ex)
    assert payloads([made]) == [["a", "b"]]


def test_messages_that_are_recovered_from_one_stay_one_batch(make: Make, a_run: Run) -> None:
    failed = [message.with_error("x") for message in messages("a\nb")]
    several = make("catch:\n  - unarchive: {format: lines}")
    [made] = run_each([several], failed, a_run.ex)
    assert payloads([made]) == [["a", "b"]]
    assert [message.error for message in made] == [None, None]
