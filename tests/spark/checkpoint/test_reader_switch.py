"""A checkpoint of Spark's own source of Kafka, as workers go on with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.opened_input import MetadataSettings, OpenKafkaInput
from streamer.connectors.merged_source import MergedSource
from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum, has_valid_checksum
from streamer.engine.planner.kafka_inputs import StreamKafkaInput, split_kafka_inputs
from streamer.engine.planner.offset_log import read_planned
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.plan import make_plan
from streamer.spark.checkpoint.reader_switch import take_over_kafka

SETTINGS = '{"batchTimestampMs":1}'


class Topic(OpenKafkaInput):
    """A Kafka input that knows where partitions begin."""

    metadata = MetadataSettings()
    starting = {("a", 1): 40}
    connection = Connection(("nowhere:1",))
    read_committed = False

    def first_offsets(self, places: Any) -> Any:
        return dict.fromkeys(places, 3)


class Ranges:
    """Stands where workers read."""

    has_partitions = True


FILES: Any = SimpleNamespace()


SOURCE = MergedSource({"file": FILES, "1": MergedSource({"kafka": Ranges()}), "z": Ranges()})  # type: ignore[dict-item]
INPUTS = [StreamKafkaInput(Topic()), StreamKafkaInput(Topic())]  # type: ignore[arg-type]
WINDOWS = "buffer: {system_window: {size: 10s}}"
SENT = "output: {redpanda: {seed_brokers: ['x:1'], topic: t, transactional: true}}"


def plan_of(text: str = WINDOWS) -> Any:
    return make_plan(parse_config(text, "c.yaml"))


def write(spark: Path, number: int, data: Any, *ends: Any) -> None:
    fields = replace(MicroBatchOffset(data), batch_time=number).to_fields()
    ours = add_checksum({**fields, "step": 5, "ends": []})
    lines = ["v1", SETTINGS, *(json.dumps(one) for one in (ours, *ends))]
    (spark / "offsets").mkdir(parents=True, exist_ok=True)
    (spark / "offsets" / str(number)).write_text("\n".join(lines))
    (spark / "offsets" / f".{number}.crc").write_bytes(b"of the former text")


def lines_of(spark: Path, number: int) -> list[Any]:
    text = (spark / "offsets" / str(number)).read_text()
    return [json.loads(line) for line in text.split("\n")[2:]]


def test_positions_move_into_ours(tmp_path: Path) -> None:
    data = {"file": {"at": 9}, "1": {"kafka": {}}, "z": {}}
    first, second = {"a": {"0": 5}}, {"b": {"0": 7}}
    write(tmp_path, 3, data, first, second)
    later = {"a": {"0": 6, "1": 44, "2": 9}}
    write(tmp_path, 4, data, later, second)
    assert take_over_kafka(tmp_path, plan_of(), SOURCE, INPUTS)
    for number, ends in ((3, [first, second]), (4, [later, second])):
        (ours,) = lines_of(tmp_path, number)
        planned = read_planned(tmp_path, number)
        assert planned.ends == ends and has_valid_checksum(ours)
        assert planned.offset.batch_time == number and planned.offset.data["file"] == {"at": 9}
        assert not (tmp_path / "offsets" / f".{number}.crc").exists()
    # What micro-batch 4 is the first to read begins where the start, or the broker, says.
    position = read_planned(tmp_path, 4).offset.data["1"]["kafka"]
    assert position["kafka:begun"] == {"a": {"1": 40, "2": 3}}
    assert not take_over_kafka(tmp_path, plan_of(), SOURCE, INPUTS)


def test_nothing_is_done_before_a_micro_batch_or_without_kafka(tmp_path: Path) -> None:
    assert not take_over_kafka(tmp_path, plan_of(), SOURCE, INPUTS)
    write(tmp_path, 0, {"at": 1})
    before = (tmp_path / "offsets/0").read_bytes()
    assert not take_over_kafka(tmp_path, plan_of(), FILES, [])
    assert (tmp_path / "offsets/0").read_bytes() == before


def test_a_begun_micro_batch_of_transactions_is_ended_by_its_reader(tmp_path: Path) -> None:
    write(tmp_path, 0, {}, {"a": {"0": 5}})
    arguments = plan_of(SENT), Ranges(), INPUTS[:1]
    with pytest.raises(StreamerError, match="once with the streamer that began it"):
        take_over_kafka(tmp_path, *arguments)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/0").write_text("v1\n{}")
    assert take_over_kafka(tmp_path, *arguments)
    assert read_planned(tmp_path, 0).ends == [{"a": {"0": 5}}]


def test_an_input_is_split_for_its_reader() -> None:
    topic: Any = Topic()
    ours, inputs = split_kafka_inputs(MergedSource({"f": FILES, "k": topic}))
    sources: Any = ours
    assert type(sources.sources["k"]).__name__ == "KafkaRangeSource"
    assert sources.sources["f"] is FILES and [one.input for one in inputs] == [topic]
