"""A checkpoint in another directory than the one it was made in: what Spark notes of its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamer.spark.checkpoint.relocation import update_moved_paths
from tests.spark.conftest import Runner

SCHEMA = "state/0/_stateSchema/default/0_908dd01c"


def note(spark: Path, former: str) -> Path:
    """Write what Spark 4.3 writes of an operator, in a checkpoint that was made at `former`."""
    store: dict[str, Any] = {
        "storeName": "default",
        "numColsPrefixKey": 0,
        "numPartitions": 2,
        "stateSchemaFilePaths": [f"file:{former}/{SCHEMA}"],
    }
    about = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPySparkExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": '{"timeMode":"NoTime"}',
    }
    (spark / SCHEMA).parent.mkdir(parents=True)
    (spark / SCHEMA).write_bytes(b"x")
    path = spark / "state/0/_metadata/v2/0"
    path.parent.mkdir(parents=True)
    path.write_text("v2\n" + json.dumps(about, separators=(",", ":")))
    path.with_name(".0.crc").write_bytes(b"crc")
    return path


def test_the_place_of_a_schema_follows_a_move_and_nothing_else_changes(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    path = note(spark, "/var/lib/former/spark")
    before = path.read_text()
    assert update_moved_paths(spark)
    assert path.read_text() == before.replace("/var/lib/former/spark", str(spark))
    assert sorted(one.name for one in path.parent.iterdir()) == ["0"]
    assert not update_moved_paths(spark)


def test_a_checkpoint_that_stands_where_it_was_made_is_not_written(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    path = note(spark, str(spark))
    assert not update_moved_paths(spark)
    assert path.with_name(".0.crc").exists()


def test_a_copy_does_not_go_on_with_the_schema_of_the_original(tmp_path: Path) -> None:
    original, copy = tmp_path / "original" / "spark", tmp_path / "copy" / "spark"
    note(original, str(original))
    path = note(copy, str(original))
    assert update_moved_paths(copy)
    assert f"file:{copy}/" in path.read_text()


def test_a_note_of_another_form_is_left_to_spark(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    path = note(spark, "/elsewhere")
    path.write_text("v9\nnothing that is known")
    assert not update_moved_paths(spark)
    assert path.read_text() == "v9\nnothing that is known"


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_goes_on_with_its_open_window_in_another_directory(
    run_stream: Runner, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out.jsonl"
    source.mkdir()
    config = f"""
input: {{ file: {{ paths: ["{source}/*.jsonl"], scanner: {{ lines: {{}} }} }} }}
buffer:
  tumbling_window:
    {{ size: 10s, timestamp_mapping: root = this.at.number(), end_of_input: keep }}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{ {{"n": json("n").from_all()}} }} else {{ deleted() }}
output: {{ file: {{ path: "{out}", codec: lines }} }}
"""
    (source / "a.jsonl").write_text('{"at": 1, "n": 1}\n{"at": 2, "n": 2}\n')
    run_stream(config, checkpoint="first/checkpoint")
    (tmp_path / "first").rename(tmp_path / "second")
    assert update_moved_paths(tmp_path / "second" / "checkpoint" / "spark")
    (source / "b.jsonl").write_text('{"at": 3, "n": 3}\n{"at": 25, "n": 4}\n')
    run_stream(config, checkpoint="second/checkpoint")
    assert [json.loads(line) for line in out.read_text().splitlines()] == [{"n": [1, 2, 3]}]
