"""The offset of a micro-batch: its JSON form, that of former versions, and that of later ones."""

import json
import pickle

import pytest

from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum
from streamer.engine.planner.planner_channels import AggregatesFrom, MicroBatchOffset
from streamer.window.settings.back_pressure import BackPressure

PLAIN = MicroBatchOffset({"pos": 20}, tick=7, start_id="a", batch_time=5, pieces=2)
WHOLE = MicroBatchOffset(
    {"pos": 20},
    tick=7,
    start_id="a",
    ended=True,
    aggregates_from=AggregatesFrom("m", 9),
    lag=True,
    batch_time=5,
    pieces=2,
    requested_at=3,
    pressure=BackPressure(((1, 2), (4, 5)), 1, 2),
    suspended=8,
    backlog_ends=[{"cars": {"0": 9}}],
)
PLAIN_JSON = (
    '{"version": 1, "data": {"pos": 20}, "tick": 7, "start": "a", "ended": false, '
    '"folded": [null, null], "lag": false, "time": 5, "pieces": 2}'
)
WHOLE_JSON = (
    '{"version": 1, "data": {"pos": 20}, "tick": 7, "start": "a", "ended": true, '
    '"folded": ["m", 9], "lag": true, "time": 5, "pieces": 2, "woken": 3, '
    '"pressure": [[[1, 2], [4, 5]], 1, 2], "stood": 8, "backlog_ends": [{"cars": {"0": 9}}]}'
)


@pytest.mark.parametrize(("offset", "text"), [(PLAIN, PLAIN_JSON), (WHOLE, WHOLE_JSON)])
def test_what_spark_writes_keeps_its_keys_and_is_read_again(offset, text):
    assert offset.to_json() == text
    assert MicroBatchOffset.from_json(text) == offset
    assert MicroBatchOffset.from_fields(add_checksum(offset.to_fields())) == offset
    assert pickle.loads(pickle.dumps(offset)) == offset


def test_an_offset_of_a_former_version_is_read_without_a_version():
    fields = json.loads(WHOLE_JSON)
    del fields["version"]
    fields |= {"step": 4, "ends": [{"cars": {"0": 7}}]}  # beside Spark's own source of Kafka
    assert MicroBatchOffset.from_fields(fields) == WHOLE
    assert MicroBatchOffset.from_fields({"data": {"pos": 20}}) == MicroBatchOffset({"pos": 20})
    before_times = {"data": {}, "tick": 7, "start": "a", "ended": False, "floor": 5}
    assert MicroBatchOffset.from_fields(before_times).batch_time == 5


def test_an_offset_of_a_later_version_is_refused():
    with pytest.raises(StreamerError, match="offset of version 2, expected at most 1"):
        MicroBatchOffset.from_fields({**PLAIN.to_fields(), "version": 2})


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        '{"time": "x"}',
        '{"time": null}',
        '{"folded": [1]}',
        '{"pressure": 1}',
        '{"version": "1"}',
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        MicroBatchOffset.from_json(text)


def test_another_generation_goes_on_from_the_position_and_the_time():
    assert WHOLE.to_start_fields(False) == {"data": {"pos": 20}, "time": 5}
    begins = MicroBatchOffset.from_fields(WHOLE.to_start_fields(True))
    assert (begins.data, begins.batch_time) == (WHOLE.data, WHOLE.batch_time)
    assert begins.aggregates_from == WHOLE.aggregates_from
    assert (begins.tick, begins.start_id, begins.ended) == (0, "", False)
