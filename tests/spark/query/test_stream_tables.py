"""Lookup tables in a running stream: workers look up what the driver has loaded."""

import json

import pytest
from pyspark import SparkFiles

from streamer.spark.query.stream_tables import forget_file

pytestmark = pytest.mark.spark

CONFIG = """
input: {{file: {{paths: ["{directory}/in.jsonl"]}}}}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = table("cities").get(this.city).country
    size: 10s
pipeline:
  processors:
    - mapping: |
        root = {{"name": table("countries").get(@window_key).name, "n": batch_size()}}
        root = if batch_index() > 0 {{ deleted() }}
output: {{stdout: {{}}}}
table_resources:
  - {{label: cities, csv: {{path: "{directory}/cities.csv", key: city}}}}
  - {{label: countries, inline: {{key: id, rows: [{{id: de, name: Germany}}]}}}}
"""


def test_windows_are_keyed_and_named_by_tables(run_stream, tmp_path):
    (tmp_path / "cities.csv").write_text("city,country\nBonn,de\nTrier,de\nLyon,fr\n")
    cities = ["Bonn", "Trier", "Lyon", "Bonn", "Rome"]
    lines = [json.dumps({"at": at, "city": city}) for at, city in enumerate(cities)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    ran = run_stream(CONFIG.format(directory=tmp_path))
    made = sorted((json.loads(line) for line in ran.lines), key=lambda one: -one["n"])
    assert made[0] == {"name": "Germany", "n": 3}
    assert made[1:] == [{"name": None, "n": 1}] * 2
    counts = {(name, dict(labels).get("label")): n for (name, labels), n in ran.counts.items()}
    assert counts["table_rows", "cities"] == 3 and counts["table_refreshed", "countries"] == 1


def test_a_file_that_executors_fetch_can_be_withdrawn(session, tmp_path):
    context = session.sparkContext
    for name in ("kept.table", "gone.table"):
        (tmp_path / name).write_text(name)
        context.addFile(str(tmp_path / name))
    forget_file(session, "gone.table")
    files = context._jsc.sc().addedFiles().apply("default").keySet().mkString(" ")
    assert "kept.table" in files and "gone.table" not in files

    def read(_):
        return [open(SparkFiles.get("kept.table")).read()]

    assert context.parallelize([0], 1).mapPartitions(read).collect() == ["kept.table"]
