"""`streamer kafka-offsets` as it is called, on checkpoints as a stream leaves them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.config import load_config
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.plan import make_plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from tests.servers.kafka import Kafka, Record

_NUMBERS = itertools.count()
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_config("127.0.0.1:9", "none")


def write_config(address: str, topic: str) -> None:
    Path("k.yaml").write_text(
        f"input: {{redpanda: {{seed_brokers: ['{address}'], topics: [{topic}]}}}}\n"
        "output: {drop: {}}\n"
    )


def call(*arguments: str) -> int:
    return invoke(["kafka-offsets", "k.yaml", "--checkpoint", "c", *arguments])


def begin(
    topic: str, position: dict[str, int], directory: str = "c", reader: str = "workers"
) -> Checkpoint:
    """Return a checkpoint whose reader has finished a micro-batch up to a position."""
    checkpoint = Checkpoint(directory)
    starting = {topic: dict.fromkeys(position, -2)}
    remembered = {"cluster": "", "topics": {topic: "former"}, "starting": starting}
    plan = make_plan(load_config(Path("k.yaml")))
    checkpoint.bind(plan.fingerprint, {"": remembered})
    data = {"kafka:at": {topic: position}} if reader == "workers" else {}
    offset = json.dumps(MicroBatchOffset(data, tick=7, batch_time=1).to_fields())
    of_spark = [] if reader == "workers" else [json.dumps({topic: position})]
    settings = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}})
    for log, lines in (
        ("offsets", ["v1", settings, offset, *of_spark]),
        ("commits", ["v1", "{}"]),
    ):
        path = Path(str(checkpoint.spark)) / log / "3"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(lines))
    return checkpoint


def only_line(capsys: Capture) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_without_a_checkpoint_there_are_no_positions(capsys: Capture) -> None:
    assert call() == 1
    assert "there is no checkpoint c: the stream has not run; start_offset in" in only_line(capsys)


def test_a_checkpoint_that_was_never_read_on_has_none(capsys: Capture) -> None:
    Checkpoint("c").close()
    assert call() == 1
    assert "has no positions: the stream has not run on it" in only_line(capsys)


def test_a_stream_that_runs_is_left_alone(capsys: Capture) -> None:
    checkpoint = begin("t", {"0": 1})
    assert call("--to-earliest", "--apply") == 1
    assert "another streamer uses the checkpoint" in only_line(capsys)
    checkpoint.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to-earliest", "--to-latest"], "--to-latest does not go with --to-earliest"),
        (["--apply"], "--apply needs an option that changes something"),
        (["--to-offset", "-1"], "Invalid value for '--to-offset'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    assert call(*arguments) == 1
    assert said in capsys.readouterr().err


def test_a_config_without_kafka_has_no_offsets(capsys: Capture) -> None:
    Path("k.yaml").write_text("input: {stdin: {}}\n")
    Path("c").mkdir()
    assert call() == 1
    assert "the input stdin reads no Kafka topics" in only_line(capsys)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A topic with five messages in partition 0, of which two were read, and three in 1."""
    name = kafka.create(f"offsets-{next(_NUMBERS)}", partitions=2)
    messages = [Record(b"x", partition=0, timestamp=1_000 * n) for n in range(1, 6)]
    kafka.produce(name, *messages, *(Record(b"x", partition=1, timestamp=9_000) for _ in range(3)))
    write_config(kafka.bootstrap, name)
    begin(name, {"0": 2}).close()
    return name


@pytest.mark.slow
def test_positions_are_shown_with_what_waits(topic: str, capsys: Capture) -> None:
    assert call("--json") == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "input": "",
        "topic": topic,
        "partition": 0,
        "position": 2,
        "first": 0,
        "last": 5,
        "lag": 3,
        "time": "1970-01-01T00:00:03Z",
    }
    # It came after the last run, and is read from its beginning.
    assert (second["position"], second["lag"]) == (0, 3)
    assert call("--topic", f"{topic}:0") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["topic", "partition", "position", "first", "last", "lag", "time"]
    assert row.split() == [topic, "0", "2", "0", "5", "3", "1970-01-01T00:00:03Z"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--to-earliest"], {"0": 0, "1": 0}),
        (["--to-latest"], {"0": 5, "1": 3}),
        (["--to-datetime", "1970-01-01T00:00:04Z"], {"0": 3, "1": 0}),
        (["--to-datetime", "1970-01-02T00:00:00Z"], {"0": 5, "1": 3}),
        (["--to-offset", "1"], {"0": 1, "1": 1}),
        (["--to-offset", "4", "--topic", "TOPIC:0"], {"0": 4}),
        (["--shift-by", "2"], {"0": 4, "1": 2}),
        (["--from-group", "TOPIC"], {"0": 2, "1": 1}),
        (["--from-checkpoint", "other"], {"0": 5, "1": 2}),
    ],
)
def test_positions_move_only_when_they_are_applied(
    arguments: list[str], expected: dict[str, int], topic: str, kafka: Kafka, capsys: Capture
) -> None:
    arguments = [one.replace("TOPIC", topic) for one in arguments]
    kafka.commit(topic, topic, {1: 1})
    begin(topic, {"0": 5, "1": 2}, "other").close()
    before = Path("c/streamer.json").read_bytes()
    assert call(*arguments) == 0
    out, err = capsys.readouterr()
    assert err == "Nothing is changed. --apply does it.\n"
    assert Path("c/streamer.json").read_bytes() == before
    assert call(*arguments, "--apply") == 0
    assert capsys.readouterr().out == out
    checkpoint = Checkpoint("c")
    assert checkpoint.generation == 1 and checkpoint.kafka_start_offsets == [{topic: expected}]
    assert checkpoint.start_offset is not None and not checkpoint.is_planned
    # Workers, which read Kafka, begin there.
    assert checkpoint.start_offset.data == {"kafka:at": {topic: expected}}
    # The topic is from now on what it is now.
    assert checkpoint.read_record()["inputs"][""]["topics"][topic] not in ("", "former")
    checkpoint.close()
    assert call("--json") == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert {row["partition"]: row["position"] for row in rows} == {
        0: expected["0"],
        1: expected.get("1", 0),
    }


@pytest.mark.slow
def test_positions_of_sparks_own_reader_move_too(kafka: Kafka, capsys: Capture) -> None:
    name = kafka.create(f"offsets-{next(_NUMBERS)}")
    kafka.produce(name, *"abcde")
    write_config(kafka.bootstrap, name)
    begin(name, {"0": 3}, reader="jvm").close()
    assert call("--shift-by", "-2", "--apply") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [name, "0", "3", "1", "2", "again"]
    checkpoint = Checkpoint("c")
    assert checkpoint.kafka_start_offsets == [{name: {"0": 1}}]
    checkpoint.close()


@pytest.mark.slow
def test_an_offset_that_is_not_there_changes_nothing(topic: str, capsys: Capture) -> None:
    assert call("--to-offset", "4", "--apply") == 1
    assert f"{topic}:1 has the offsets 0 to 3, not 4; choose" in only_line(capsys)
    checkpoint = Checkpoint("c")
    assert checkpoint.generation == 0
    checkpoint.close()


@pytest.mark.slow
def test_positions_are_committed_to_a_group(topic: str, kafka: Kafka, capsys: Capture) -> None:
    assert call("--to-group", topic) == 0
    assert f"2 partitions would be committed to the group '{topic}'" in only_line(capsys)
    assert kafka.group_offsets(topic) == {}
    assert call("--to-group", topic, "--apply") == 0
    assert kafka.group_offsets(topic) == {(topic, 0): 2, (topic, 1): 0}
    checkpoint = Checkpoint("c")
    assert checkpoint.generation == 0
    checkpoint.close()
