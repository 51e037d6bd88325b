"""The `generate` input: what is due when, and that a replay makes the same messages."""

import pickle

import pytest

from streamer.connectors.generated.message_generator import (
    MAX_MICRO_BATCH_BYTES,
    UNPACED_MESSAGES,
)
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.sdk.input.replayable import Limit

from .reading import Said, batches_of, built, planned

T = 1_700_000_000 * SECOND


def generate(fields: str = "", mapping: str = 'root.n = count("n")'):
    return built(f"input: {{generate: {{mapping: {mapping!r}{fields}}}}}\n")


def numbers(source, start, end, parts: int = 1) -> list[list[int]]:
    return [[m.doc["n"] for m in batch] for batch in batches_of(source, start, end, parts)]


def test_the_first_message_comes_at_once_then_one_every_interval():
    source = generate(", interval: 2s")
    start = source.initial_offset()
    due = []
    for seconds in (0, 1, 1.999999999, 2, 5, 6):
        due.append(source.latest_offset(start, T + int(seconds * SECOND), Limit()).offset["n"])
    assert due == [1, 1, 1, 2, 3, 4]


def test_nothing_is_due_between_two_messages():
    source = generate(", interval: 2s")
    first = source.latest_offset(source.initial_offset(), T, Limit()).offset
    latest = source.latest_offset(first, T + SECOND, Limit())
    assert (latest.offset, latest.waiting, latest.is_ended) == (first, 0, False)


def test_what_was_missed_is_made_up_for_while_the_program_runs():
    source = generate(", interval: 1ms")
    first = source.latest_offset(source.initial_offset(), T, Limit()).offset
    latest = source.latest_offset(first, T + SECOND, Limit(messages=400))
    assert (latest.waiting, latest.has_more) == (400, True)
    rest = source.latest_offset(latest.offset, T + SECOND, Limit())
    assert (rest.offset["n"], rest.has_more) == (1001, False)


@pytest.mark.parametrize("interval", ["1ms", ""])
def test_a_micro_batch_of_large_messages_has_no_more_bytes_than_it_may(interval):
    """An output may have been blocked for hours, and the driver holds what is made then."""
    source = generate(f", interval: '{interval}'", 'root = "x".repeat(100000)')
    first = source.latest_offset(source.initial_offset(), T, Limit(messages=1)).offset
    latest = source.latest_offset(first, T + 3600 * SECOND, Limit())
    assert MAX_MICRO_BATCH_BYTES // 2 < latest.waiting * 100_000 <= MAX_MICRO_BATCH_BYTES
    assert latest.has_more
    smaller = source.latest_offset(first, T + 3600 * SECOND, Limit(size=1 << 20))
    assert (smaller.waiting, smaller.has_more) == (10, True)
    # One that is larger than all that is allowed is made all the same, as is a whole batch.
    least = source.latest_offset(first, T + 3600 * SECOND, Limit(size=1))
    assert (least.waiting, least.has_more) == (1, True)


def test_the_largest_of_some_messages_says_how_many_are_made():
    mapping = 'root = "x".repeat(if count("n") > 20000 { 1000000 } else { 1 })'
    source = generate(", interval: 10ms, batch_size: 10", mapping)
    first = source.latest_offset(source.initial_offset(), T, Limit()).offset
    latest = source.latest_offset(first, T + 30 * SECOND, Limit())
    assert latest.waiting == MAX_MICRO_BATCH_BYTES // 1_000_000 // 10 * 10


def test_what_was_missed_while_the_program_was_down_is_not():
    first = generate(", interval: 1s")
    offset = first.latest_offset(first.initial_offset(), T, Limit()).offset
    offset = first.latest_offset(offset, T + 9 * SECOND, Limit()).offset
    again = generate(", interval: 1s")
    latest = again.latest_offset(offset, T + 1000 * SECOND, Limit())
    assert latest.offset["n"] == offset["n"] + 1
    [[message]] = batches_of(again, offset, latest.offset)
    assert message.doc == {"n": 11}


def test_the_input_ends_with_the_count():
    source = generate(", interval: 1s, count: 3")
    latest = source.latest_offset(source.initial_offset(), T, Limit())
    assert (latest.offset["n"], latest.is_ended) == (1, False)
    latest = source.latest_offset(latest.offset, T + 60 * SECOND, Limit())
    assert (latest.offset["n"], latest.is_ended) == (3, True)
    assert numbers(source, source.initial_offset(), latest.offset) == [[1], [2], [3]]


def test_a_count_that_was_made_smaller_ends_the_input_and_takes_nothing_back():
    source = generate(", interval: 1s, count: 2")
    offset = {"n": 5, "base": 0, "began": T}
    latest = source.latest_offset(offset, T, Limit())
    assert (latest.offset, latest.waiting, latest.is_ended) == (offset, 0, True)


@pytest.mark.parametrize("interval", ["", "0s", "-1s"])
def test_without_an_interval_there_is_no_pause(interval):
    source = generate(f", interval: '{interval}'")
    for start in (0, UNPACED_MESSAGES):
        offset = {"n": start, "base": 0, "began": T}
        assert source.latest_offset(offset, T, Limit()).offset["n"] == start + UNPACED_MESSAGES


@pytest.mark.parametrize("size", [UNPACED_MESSAGES, UNPACED_MESSAGES + 1, 3 * UNPACED_MESSAGES])
def test_a_batch_of_any_size_is_made(size):
    source = generate(f", interval: '', batch_size: {size}")
    assert source.latest_offset(source.initial_offset(), T, Limit()).offset["n"] == size
    paced = generate(f", interval: 1s, batch_size: {size}")
    assert paced.latest_offset(paced.initial_offset(), T, Limit(messages=1)).offset["n"] == size


def test_batches_are_whole_but_for_the_last():
    source = generate(", interval: '', batch_size: 4, count: 10")
    (start, latest), *rest = planned(source, Limit())
    assert not rest
    assert numbers(source, start, latest.offset) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_pieces_are_cut_at_the_ends_of_batches(parts):
    source = generate(", interval: '', batch_size: 7, count: 10000")
    (start, latest), *_ = planned(source, Limit())
    found = numbers(source, start, latest.offset, parts)
    assert found == numbers(source, start, latest.offset, 1)
    assert [n for batch in found for n in batch] == list(range(1, 10001))
    assert {len(batch) for batch in found[:-1]} == {7}


def test_a_micro_batch_takes_whole_batches():
    source = generate(", interval: '', batch_size: 4")
    assert source.latest_offset(source.initial_offset(), T, Limit(messages=10)).offset["n"] == 8
    assert source.latest_offset(source.initial_offset(), T, Limit(messages=1)).offset["n"] == 4


def test_a_message_belongs_to_its_moment_whenever_it_is_made():
    source = generate(", interval: 2s", mapping='root = {"n": count("x"), "at": now()}')
    first = source.latest_offset(source.initial_offset(), T, Limit()).offset
    end = source.latest_offset(first, T + 5 * SECOND, Limit()).offset
    expected = [
        {"n": 2, "at": "2023-11-14T22:13:22Z"},
        {"n": 3, "at": "2023-11-14T22:13:24Z"},
    ]
    for clock in (0, T, 2 * T):
        # Another start, another clock: only the offsets count.
        again = pickle.loads(pickle.dumps(generate(", interval: 2s", mapping=source.mapping)))
        made = batches_of(again, first, end, ex=Said().execution(clock))
        assert [batch[0].doc for batch in made] == expected


def test_a_clock_that_is_set_back_takes_nothing_back_and_goes_on_when_it_is_there_again():
    source = generate(", interval: 1s")
    offset = source.latest_offset(source.initial_offset(), T, Limit()).offset
    offset = source.latest_offset(offset, T + 5 * SECOND, Limit()).offset
    assert offset["n"] == 6
    back = source.latest_offset(offset, T - 3600 * SECOND, Limit())
    assert (back.offset, back.waiting) == (offset, 0)
    assert source.latest_offset(offset, T + 6 * SECOND, Limit()).offset["n"] == 7


def test_a_message_that_fails_is_logged_and_counted_and_the_next_one_is_made():
    source = generate(
        ", interval: '', count: 3",
        mapping='root.n = if count("n") == 2 { throw("no two") } else { count("m") }',
    )
    (start, latest), *_ = planned(source, Limit())
    said = Said()
    made = batches_of(source, start, latest.offset, ex=said.execution())
    assert [message.doc for [message] in made] == [{"n": 1}, {"n": 3}, {"n": 4}]
    assert said.counts == {"input_error": 1}
    [(level, text)] = said.log
    assert level == "ERROR" and "no two" in text


EVERY_THIRD = 'root = if count("n") % 3 != 0 { deleted() } else { {"n": count("m"), "at": now()} }'


def test_messages_that_are_deleted_do_not_count():
    source = generate(", interval: '', count: 4", mapping=EVERY_THIRD)
    [(start, latest)] = planned(source, Limit())
    assert (latest.is_ended, latest.has_more) == (True, False)
    assert numbers(source, start, latest.offset) == [[3], [6], [9], [12]]


def test_a_batch_runs_the_mapping_so_often_and_no_oftener_than_messages_are_missing():
    # As in Benthos: batches of 4 tries, of 3 when 3 are missing, of 2, and of 1 for the last.
    source = generate(", interval: 1s, count: 4, batch_size: 4", mapping=EVERY_THIRD)
    at, made = source.initial_offset(), []
    for second in range(20):
        latest = source.latest_offset(at, T + second * SECOND, Limit())
        made += batches_of(source, at, latest.offset)
        at = latest.offset
        if latest.is_ended:
            break
    assert [[(m.doc["n"], m.doc["at"][-3:]) for m in batch] for batch in made] == [
        [(3, "20Z")],
        [(6, "21Z")],
        [(9, "22Z")],
        [(12, "25Z")],
    ]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_replays_of_what_left_messages_out_make_the_same_however_they_are_cut(limit):
    source = generate(", interval: '', count: 50", mapping=EVERY_THIRD)
    steps = list(planned(source, Limit(messages=limit)))
    again = pickle.loads(pickle.dumps(source))
    for reader in (source, again):
        found = [numbers(reader, start, latest.offset, 3) for start, latest in steps]
        assert [n for step in found for [n] in step] == list(range(3, 151, 3))


def test_a_random_mapping_makes_as_many_as_are_asked_for():
    mapping = "root = if random_int(max: 9) > 0 { deleted() } else { 1 }"
    source = generate(", interval: '', count: 40, batch_size: 3", mapping=mapping)
    found = []
    for start, latest in planned(source, Limit(messages=60)):
        found += batches_of(source, start, latest.offset)
    assert sum(map(len, found)) == 40


def test_a_mapping_that_makes_nothing_more_ends_its_piece_with_an_error():
    source = generate(", interval: '', count: 2", mapping=EVERY_THIRD)
    [(start, latest)] = planned(source, Limit())
    source.mapping = "root = deleted()"
    said = Said()
    assert batches_of(source, start, latest.offset, ex=said.execution()) == []
    assert said.log == [("ERROR", "The mapping makes 2 messages fewer than when it was planned")]


def test_an_offset_of_a_mapping_that_left_nothing_out_is_gone_on_from():
    source = generate(", interval: 1s, count: 7", mapping=EVERY_THIRD)
    latest = source.latest_offset({"n": 5, "base": 0, "began": T - 60 * SECOND}, T, Limit())
    assert numbers(source, {"n": 5}, latest.offset) == [[6]]


def test_a_deleted_message_is_not_there():
    source = generate(
        ", interval: '', count: 1, batch_size: 2",
        mapping='root = if count("n") < 4 { deleted() } else { {"n": 4} }',
    )
    (start, latest), *_ = planned(source, Limit())
    assert numbers(source, start, latest.offset) == [[4]]


def test_a_cron_expression_has_its_messages_at_its_times_and_none_at_once():
    source = generate(", interval: '*/2 * * * * *'", "root = now().ts_unix()")
    at, found = source.initial_offset(), []
    for seconds in (0, 1, 2, 5, 8):
        latest = source.latest_offset(at, T + seconds * SECOND, Limit())
        made = [m.doc - T // SECOND for [m] in batches_of(source, at, latest.offset)]
        found.append(made)
        assert latest.waiting == len(made)
        at = latest.offset
    assert found == [[], [], [2], [4], [6, 8]]


def test_a_replay_of_scheduled_messages_makes_the_same_ones_at_the_same_times():
    source = generate(", interval: '@every 3s', batch_size: 2", 'root = [count("n"), now()]')
    start = source.latest_offset(source.initial_offset(), T, Limit()).offset
    end = source.latest_offset(start, T + 10 * SECOND, Limit()).offset
    first = [[m.raw for m in batch] for batch in batches_of(source, start, end)]
    assert [len(batch) for batch in first] == [2, 2, 2]
    again = pickle.loads(
        pickle.dumps(
            generate(", interval: '@every 3s', batch_size: 2", 'root = [count("n"), now()]')
        )
    )
    assert [[m.raw for m in batch] for batch in batches_of(again, start, end)] == first


def test_scheduled_messages_that_were_missed_while_the_program_was_down_are_not_made():
    first = generate(", interval: '* * * * * *'")
    offset = first.latest_offset(first.initial_offset(), T, Limit()).offset
    offset = first.latest_offset(offset, T + 5 * SECOND, Limit()).offset
    again = generate(", interval: '* * * * * *'")
    assert again.latest_offset(offset, T + 1000 * SECOND, Limit()).waiting == 0
    latest = again.latest_offset(offset, T + 1001 * SECOND, Limit())
    assert numbers(again, offset, latest.offset) == [[6]]


def test_a_schedule_ends_with_the_count_of_messages_that_are_made():
    source = generate(
        ", interval: '* * * * * *', count: 3",
        'root.n = if count("n") % 2 == 0 { deleted() } else { count("m") }',
    )
    start = source.latest_offset(source.initial_offset(), T, Limit()).offset
    latest = source.latest_offset(start, T + 60 * SECOND, Limit())
    assert latest.is_ended
    assert len(batches_of(source, start, latest.offset)) == 3


def test_a_schedule_that_is_behind_goes_on_in_the_next_micro_batch():
    source = generate(", interval: '* * * * * *'")
    start = source.latest_offset(source.initial_offset(), T, Limit()).offset
    latest = source.latest_offset(start, T + 60 * SECOND, Limit(messages=50))
    assert (latest.waiting, latest.has_more) == (50, True)
    rest = source.latest_offset(latest.offset, T + 60 * SECOND, Limit(messages=50))
    assert (rest.waiting, rest.has_more) == (10, False)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ("soon", "'soon' is not a duration.*or a cron expression"),
        ("61 * * * *", "is no cron expression: '61' does not fit a minute"),
        ("@often", "is no cron expression: unrecognized descriptor"),
        ("0 0 30 2 *", "no time fits"),
    ],
)
def test_lint_refuses_an_interval_that_is_none(interval: str, text: str):
    with pytest.raises(ConfigError, match=text):
        generate(f", interval: {interval!r}")
